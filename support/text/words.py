"""Text formatting of names, times, numbers and values for pages. Most functions are template filters. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final
from urllib.parse import quote

SHOWN_BYTES: Final = 64  # bytes; longer binary values are shown as their size
EXACT: Final = 2**53  # below it, a double represents every whole number exactly
MAX_SHOWN: Final = 200_000  # characters of a result; the rest is cut off

_PLACE: Final = re.compile(
    r"(?:^|: )((?:components|services|modules|packages|processes|remotes|network)\.[\w.\-]+)(?=: )"
)
"""Configuration path in the error message of a machine."""
_UNITS: Final = (("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))
_STEPS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def short(name: str) -> str:
    """Return the short name, such as `left` of `rdk:component:motor/left`."""
    return name.partition("/")[2] or name


def api(name: str) -> str:
    """Return the API, such as `rdk:component:motor` of `rdk:component:motor/left`."""
    return name.partition("/")[0]


def kind(name: str) -> str:
    """Return the subtype, such as `motor` of `rdk:component:motor/left` or `internal` of `internal/rpc`."""
    return api(name).rpartition(":")[2]


def model_word(model: str) -> str:
    """Return the model without the prefix of built-in models."""
    return model.removeprefix("rdk:builtin:")


def dom_id(name: str) -> str:
    """Return the element id for the node `name`."""
    return "n" + hashlib.blake2s(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def href(name: str) -> str:
    """Return the URL of the page of a node."""
    return "/resources/" + quote(name, safe=":/")


def shorten(text: str, limit: int) -> str:
    """Shorten `text` to at most `limit` characters by removing its middle, since the ends of names say most."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def capitalize_first(text: str) -> str:
    """Return the text with its first letter capitalized."""
    return text[:1].upper() + text[1:]


def ago(moment: datetime, now: datetime) -> str:
    """Format the time since `moment` in one unit: `12 s`, `5 min`, `3 h`, `2 d`."""
    return span((now - moment).total_seconds())


def span(seconds: float) -> str:
    """Format a duration in its largest unit, rounded down; negative values count as 0."""
    whole = max(0, int(seconds))
    size, unit = next((step for step in _STEPS if whole >= step[0]), _STEPS[-1])
    return f"{whole // size} {unit}"


def took(seconds: float) -> str:
    """Format a duration in milliseconds below one second, otherwise in seconds with one decimal."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def clock(moment: datetime) -> str:
    """Format date and time in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock_ms(moment: datetime) -> str:
    """Format the time of day in UTC with milliseconds."""
    return moment.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3]


def number(value: float) -> str:
    """Format whole numbers in full, others with at most six significant digits."""
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < EXACT)
    return str(int(value)) if whole else f"{value:.6g}"


def plain(value: object) -> Any:
    """Convert a result to JSON values: dataclasses to objects, bytes to base64 or, if long, to their size."""
    if isinstance(value, Enum):
        return value.name.lower()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has neither NaN nor infinity
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return base64.b64encode(data).decode() if len(data) <= SHOWN_BYTES else f"<{len(data)} bytes>"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (Sequence, Set)):
        return [plain(item) for item in value]
    return str(value)


def pretty(value: object) -> str:
    """Format a result as indented JSON, truncated to `MAX_SHOWN` characters."""
    text = json.dumps(plain(value), indent=2, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n… {len(text) - MAX_SHOWN} characters more"


def readings(values: Mapping[str, object]) -> list[tuple[str, str, float | None]]:
    """Return a row for each value, sorted by dotted key: key, text, and the number to plot, or None.

    The marks `_type`, by which SDKs recognize vectors and positions, have none.
    """
    rows: list[tuple[str, str, float | None]] = []
    _flatten("", plain(values), rows)
    return sorted(rows, key=lambda row: row[0])


def _flatten(path: str, value: Any, rows: list[tuple[str, str, float | None]]) -> None:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            if key != "_type":
                _flatten(f"{path}.{key}" if path else key, item, rows)
    elif isinstance(value, bool):
        rows.append((path, "true" if value else "false", float(value)))
    elif isinstance(value, (int, float)):
        rows.append((path, number(value), float(value)))
    elif isinstance(value, str):
        rows.append((path, value, None))
    elif path:
        rows.append((path, json.dumps(value, ensure_ascii=False), None))


def pairs_text(fields: Mapping[str, object] | str) -> str:
    """Format the fields of a log entry, or their JSON, as `key=value` separated by blanks."""
    pairs = json.loads(fields or "{}") if isinstance(fields, str) else fields
    return " ".join(f"{key}={value_text(value)}" for key, value in pairs.items())


def value_text(value: object) -> str:
    """Format the value of a field of a log entry: a text as it is, everything else as JSON with short numbers."""
    if isinstance(value, float):
        return number(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def path_in(reason: str) -> tuple[str, str, str]:
    """Split an error message of a machine into the text before its configuration path, the path, and the rest."""
    match = _PLACE.search(reason)
    return (reason, "", "") if match is None else (reason[: match.start(1)], match[1], reason[match.end(1) :])


def bytes_text(size: int) -> str:
    """Format a size in bytes, such as `34.8 kB`."""
    if size < 1000:
        return f"{size} B"
    value, unit = next((size / factor, name) for name, factor in _UNITS if size < factor * 999.5 or name == "TB")
    return f"{value:.3g} {unit}"
