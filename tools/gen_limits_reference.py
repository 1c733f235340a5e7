"""Writes docs/reference/limits.md from cloud/limits.py.

python tools/gen_limits_reference.py          # write it
python tools/gen_limits_reference.py --check  # exit 1 if it is not current
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "limits.md"

HEAD = """\
# Limits

<!-- Written by tools/gen_limits_reference.py from cloud/limits.py; run it after a change there. -->

What one tenant may send to a cloud or keep in it. Input beyond a limit is refused as a whole, and nothing of it is
kept. The error names the limit, the size that was sent and what to do instead. The first two tables have the limit's
name as errors show it. A size limit is answered with INVALID_ARGUMENT (HTTP 400), a limit of how many with
RESOURCE_EXHAUSTED (HTTP 429).
"""


def main() -> int:
    """Write the page, or with `--check` compare it."""
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE} is not current; run python tools/gen_limits_reference.py")
            return 1
        return 0
    PAGE.write_text(text)
    return 0


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    from cloud.limits import ELSEWHERE, LIMITS
    from schema.errors import ErrorKind

    yield HEAD
    for title, kind in (("Sizes", ErrorKind.INVALID), ("How many", ErrorKind.EXHAUSTED)):
        yield f"## {title}\n\n| limit | at most | | remedy |\n|---|---|---|---|"
        for one in LIMITS:
            if one.kind is kind:
                yield f"| `{one.name}` | {shown(one.value, one.unit)} | {one.of} | {one.remedy} |"
        yield ""
    for title, rows in ELSEWHERE.items():
        yield f"## {title}\n\n| at most | |\n|---|---|"
        for row in rows:
            yield f"| {shown(value_at(row.where), row.unit)} | {row.of} |"
        yield ""


def value_at(where: str) -> Any:
    """The value that `module:NAME` or `module:Class.field` (the default of a dataclass's field) names."""
    module, _, path = where.partition(":")
    name, _, field = path.partition(".")
    holder = getattr(importlib.import_module(module), name)
    if not field:
        return holder
    (default,) = (one.default for one in dataclasses.fields(holder) if one.name == field)
    return default


def shown(value: Any, unit: str) -> str:
    """A value with its unit; bytes in the largest unit that keeps them whole."""
    if unit == "bytes":
        for factor, word in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
            if value >= factor and value % factor == 0:
                return f"{value // factor:,} {word}"
    return f"{value:,g} {unit}" if isinstance(value, float) else f"{value:,} {unit}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
