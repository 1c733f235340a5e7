"""docs/reference/hardware-faults.md from what the tests of the rig measured: `python tools/gen_fault_table.py`.

Figures are read from build/hil/recovery.json (or $MACHINE_HIL_DIR); rows that were not measured this time stay as they
are in the page, unless their test is gone. Run it after `pytest tests/hil`.
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

What happens when hardware fails, and how long recovery takes once the cause is gone. Every row is shown by a test with
real kernel drivers in the guest of the rig (tests/hil/README.md). Times are of that guest, which is
slower than the computer it runs on: they are upper limits.

| fault | what the user sees | back after | shown by |
|---|---|---|---|
"""
ROW: Final = re.compile(
    r"^\| (?P<what>.+?) \| (?P<seen>.*?) \| (?P<seconds>[\d.]+) s \| `(?P<test>[^`]+)` \|$", re.MULTILINE
)

GRPC: Final = re.compile(r"^\(<Status\.\w+: \d+>, ['\"](.*)['\"], None\)$", re.DOTALL)


def rows_of_page() -> dict[str, dict[str, object]]:
    """What the page says now."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return {
        found["what"]: {
            "seen": found["seen"].replace("\\|", "|"),
            "seconds": float(found["seconds"]),
            "test": found["test"],
        }
        for found in ROW.finditer(text)
    }


def exists(test: str) -> bool:
    """Whether the test that shows a row is still there."""
    path, _, name = test.partition("::")
    file = ROOT / path
    return file.exists() and f"def {name.partition('[')[0]}(" in file.read_text()


def cell(text: str) -> str:
    """In one cell of a table; of an error of gRPC only its message."""
    wrapped = GRPC.match(text)
    text = wrapped[1] if wrapped else text
    return " ".join(text.replace("|", "\\|").split())


def page(rows: dict[str, dict[str, object]]) -> str:
    """The whole page."""
    lines = [
        f"| {cell(what)} | {cell(str(row['seen']))} | {float(str(row['seconds'])):.1f} s | `{row['test']}` |"
        for what, row in sorted(rows.items(), key=lambda item: item[0].lower())
        if exists(str(row["test"]))
    ]
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    rows = rows_of_page()
    if MEASURED.exists():
        rows |= {cell(what): row for what, row in json.loads(MEASURED.read_text()).items()}
    PAGE.write_text(page(rows))
    print(f"{PAGE.relative_to(ROOT)}: {len(rows)} rows")


if __name__ == "__main__":
    main()
