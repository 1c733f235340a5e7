"""Write docs/reference/hardware-faults.md from what the tests of the rig measured.

`make generate` keeps the figures of the page and drops rows whose test no longer exists. `python -m
tools.gen_fault_table` reads new figures from build/hil/recovery.json (or $MACHINE_HIL_DIR), where `pytest tests/hil`
writes them, and keeps the rows that were not measured.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "hardware-faults.md"
MEASURED: Final = Path(os.environ.get("MACHINE_HIL_DIR") or ROOT / "build" / "hil") / "recovery.json"

HEAD: Final = """# Hardware faults

<!-- Written by tools/gen_fault_table.py from what the tests of the rig measured last. -->

This table shows what happens when hardware fails, and how long recovery takes after the cause is gone. Every row comes
from a test with real kernel drivers in the guest of the rig (tests/hil/README.md). The times were measured in that
guest, which is slower than the computer that it runs on: they are upper limits.

| fault | what the user sees | back after | shown by |
|---|---|---|---|
"""
ROW: Final = re.compile(
    r"^\| (?P<what>.+?) \| (?P<seen>.*?) \| (?P<seconds>[\d.]+) s \| `(?P<test>[^`]+)` \|$", re.MULTILINE
)

GRPC: Final = re.compile(r"^\(<Status\.\w+: \d+>, ['\"](.*)['\"], None\)$", re.DOTALL)


def rows_of_page() -> dict[str, dict[str, object]]:
    """Return the rows of the page as it is now."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return {
        match["what"]: {
            "seen": match["seen"].replace("\\|", "|"),
            "seconds": float(match["seconds"]),
            "test": match["test"],
        }
        for match in ROW.finditer(text)
    }


def exists(test: str) -> bool:
    """Return whether the test of a row still exists."""
    path, _, name = test.partition("::")
    file = ROOT / path
    return file.exists() and f"def {name.partition('[')[0]}(" in file.read_text()


def cell(text: str) -> str:
    """Format text for a table cell; reduce a gRPC error to its message."""
    wrapped = GRPC.match(text)
    text = wrapped[1] if wrapped else text
    return " ".join(text.replace("|", "\\|").split())


def page(rows: dict[str, dict[str, object]] | None = None) -> str:
    """Return the text of the page with these rows; by default, with its present rows."""
    rows = rows_of_page() if rows is None else rows
    lines = [
        f"| {cell(fault)} | {cell(str(row['seen']))} | {float(str(row['seconds'])):.1f} s | `{row['test']}` |"
        for fault, row in sorted(rows.items(), key=lambda item: item[0].lower())
        if exists(str(row["test"]))
    ]
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Write the page with the latest measured figures."""
    rows = rows_of_page()
    if MEASURED.exists():
        rows |= {cell(fault): row for fault, row in json.loads(MEASURED.read_text()).items()}
    PAGE.write_text(page(rows))
    print(f"{PAGE.relative_to(ROOT)}: {len(rows)} rows")


if __name__ == "__main__":
    main()
