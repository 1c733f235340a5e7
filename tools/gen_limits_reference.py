"""Write docs/reference/limits.md from cloud/values/limits.py."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "limits.md"

HEAD = """\
# Limits

<!-- Written by tools/gen_limits_reference.py from cloud/values/limits.py; `make generate` brings it up to date. -->

These tables list what one tenant can send to a cloud and store in it. Input above a limit is rejected as a whole, and
nothing of it is stored. The error names the limit, the size that was sent and the remedy. The first two tables have the
name of the limit as errors show it. Above a size limit the error is INVALID_ARGUMENT (HTTP 400), above a limit of the
number of objects RESOURCE_EXHAUSTED (HTTP 429).
"""


def page() -> str:
    """Return the text of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    from cloud.values.limits import ENFORCED_ELSEWHERE, LIMITS
    from schema.errors import ErrorKind

    yield HEAD
    for title, kind in (("Sizes", ErrorKind.INVALID), ("How many", ErrorKind.EXHAUSTED)):
        yield f"## {title}\n\n| limit | at most | | remedy |\n|---|---|---|---|"
        for limit in LIMITS:
            if limit.kind is kind:
                yield f"| `{limit.name}` | {shown(limit.value, limit.unit)} | {limit.of} | {limit.remedy} |"
        yield ""
    for title, rows in ENFORCED_ELSEWHERE.items():
        yield f"## {title}\n\n| at most | |\n|---|---|"
        for row in rows:
            yield f"| {shown(value_at(row.where), row.unit)} | {row.of} |"
        yield ""


def value_at(where: str) -> Any:
    """Return the value named by `module:NAME`, `module:NAME.field` or `module:Class.field` (a dataclass's default)."""
    module, _, path = where.partition(":")
    name, _, field = path.partition(".")
    holder = getattr(importlib.import_module(module), name)
    if not field:
        return holder
    if not isinstance(holder, type):
        return getattr(holder, field)
    (default,) = (candidate.default for candidate in dataclasses.fields(holder) if candidate.name == field)
    return default


def shown(value: Any, unit: str) -> str:
    """Format a value with its unit; bytes in the largest unit that gives a whole number."""
    if unit == "bytes":
        for factor, word in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
            if value >= factor and value % factor == 0:
                return f"{value // factor:,} {word}"
    return f"{value:,g} {unit}" if isinstance(value, float) else f"{value:,} {unit}"
