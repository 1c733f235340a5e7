"""A log message and its text format. Pure."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec

DEBUG, INFO, WARN, ERROR = 10, 20, 30, 40

LEFT_OUT: Final = "…"  # replaces what is too long

_NAMES: Final = ((ERROR, "ERROR"), (WARN, "WARN"), (INFO, "INFO"))
_COLOURS: Final = {"ERROR": "\x1b[31m", "WARN": "\x1b[33m", "INFO": "\x1b[34m", "DEBUG": "\x1b[35m"}
_PLAIN: Final = "\x1b[0m"
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160)) if chr(code) not in "\n\t"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A log message whose secrets are masked."""

    seq: int  # sequence number, unique within the process
    time: float  # seconds since 1970
    level: int
    logger: str
    caller: str  # engine/host.py:123
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    trace: str = ""  # traceback of an exception

    @property
    def level_name(self) -> str:
        """The name of the level: DEBUG, INFO, WARN or ERROR."""
        return next((name for level, name in _NAMES if self.level >= level), "DEBUG")


def timestamp(seconds: float) -> str:
    """Format a time as UTC with milliseconds: `2006-01-02T15:04:05.000Z`."""
    when = datetime.datetime.fromtimestamp(int(seconds * 1000 + 0.5) / 1000, datetime.UTC)
    return when.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy with JSON types only, which keeps no object alive; other values become text. Never fails."""
    try:
        result: dict[str, Any] = msgspec.to_builtins(dict(fields), enc_hook=_text, str_keys=True)
    except Exception:  # a foreign object may raise anything when it is converted
        return {str(key): _text(value) for key, value in fields.items()}
    return result


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # a message must be written even if one of its values cannot
        return f"<{type(value).__name__}>"


def limited(fields: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return fields from `plain` with at most `most` characters in texts and names; the rest becomes `…`."""
    left = most

    def cut(value: Any) -> Any:
        nonlocal left
        if left <= 0:
            return LEFT_OUT
        if isinstance(value, dict):
            return {cut(key): cut(item) for key, item in islice(value.items(), left)}
        if isinstance(value, list):
            return [cut(item) for item in islice(value, left)]
        size, left = left, left - (len(value) if isinstance(value, str) else 8)
        return value if left >= 0 or not isinstance(value, str) else value[:size] + LEFT_OUT

    result = {}
    for key, value in fields.items():
        if left <= 0:
            result[LEFT_OUT] = "the rest is left out"
            break
        result[cut(key)] = cut(value)
    return result


def fields_json(fields: Mapping[str, Any]) -> str:
    """Return fields from `plain` as a JSON object."""
    try:
        return msgspec.json.encode(fields).decode()
    except (UnicodeEncodeError, msgspec.MsgspecError):  # lone surrogates
        return json.dumps(fields)


def format_line(entry: Entry, *, colour: bool = False) -> str:
    """Format the entry as a tab-separated line without a line feed at the end; continuation lines begin with a tab.

    Control characters are escaped, so that a message can neither forge a line nor control a terminal.
    """
    name = entry.level_name
    level = f"{_COLOURS[name]}{name}{_PLAIN}" if colour else name
    parts = [timestamp(entry.time), level, entry.logger, entry.caller, _clean(entry.message)]
    if entry.fields:
        parts.append(_clean(fields_json(entry.fields)))
    line = "\t".join(parts)
    return f"{line}\n\t{_clean(entry.trace.rstrip())}" if entry.trace else line


def _clean(text: str) -> str:
    safe = text.translate(_CONTROL).replace("\n", "\n\t")
    return safe.encode(errors="backslashreplace").decode()
