"""A configurable parser that converts text, such as the output of a program or a serial device, to readings."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from schema import ErrorKind, MachineError

Format = Literal["json", "csv", "key_value", "number", "regex", "text"]

_PAIR: Final = re.compile(r"""(?<![\w.-])[\d.-]*+([A-Za-z_][\w.-]*+)\s*+[=:]\s*+("[^"]*+"|'[^']*+'|[^\s,;]+)""")

_EXCERPT: Final = 80  # characters of bad input shown in an error
MAX_TEXT: Final = 65536
"""Characters in which a regular expression is searched."""
_MAX_PATTERN: Final = 1000  # characters


class Parser(msgspec.Struct, kw_only=True, frozen=True):
    """A parser of one text format. ValueError for settings that do not fit the format."""

    format: Format = "json"
    pattern: str = ""
    columns: Sequence[str] = ()
    separator: str = ","

    def __post_init__(self) -> None:
        if self.format == "regex":
            if not _linear(self.pattern).groupindex:
                raise ValueError("pattern has no named group; write one such as (?P<value>[0-9.]+)")
        elif self.pattern:
            raise ValueError(f"pattern is used only with the format regex, not with {self.format}")
        if not self.separator:
            raise ValueError("separator is empty")

    def parse(self, text: str) -> dict[str, Any]:
        """Return the readings by name. MachineError (UNAVAILABLE) with an excerpt if the text is not in the format."""
        text = text.strip()
        readings = _PARSERS[self.format](self, text)
        if readings is None:
            shown = text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"
            raise MachineError(
                f"{shown!r} is not {_NAMES[self.format]}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="correct the sender, or choose another format",
            )
        return readings


@functools.lru_cache(64)
def _linear(pattern: str) -> Any:
    """Compile an expression whose search takes time in proportion to the text. Raises ValueError.

    Python's own expressions can be made to search for years, and nothing else runs in the process meanwhile.
    """
    try:
        import re2  # 18 ms and 3.3 MiB, for this format only
    except ImportError:
        raise ValueError("the format regex needs the package google-re2, which this computer does not have") from None
    if len(pattern) > _MAX_PATTERN:
        raise ValueError(f"pattern has {len(pattern)} characters; {_MAX_PATTERN} is the limit")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else error
        raise ValueError(f"pattern is not a regular expression in the syntax of RE2: {reason}") from None


def scalar(text: str) -> int | float | bool | str:
    """Convert text to a number or boolean if possible; otherwise return it without surrounding quotes."""
    text = text.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _json(parser: Parser, text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else {"value": value}


def _csv(parser: Parser, text: str) -> dict[str, Any] | None:
    cells = [scalar(cell) for cell in text.split(parser.separator)]
    names = list(parser.columns) or [f"column_{n}" for n in range(1, len(cells) + 1)]
    return dict(zip(names, cells, strict=True)) if text and len(names) == len(cells) else None


def _key_value(parser: Parser, text: str) -> dict[str, Any] | None:
    return {name: scalar(value) for name, value in _PAIR.findall(text)} or None


def _number(parser: Parser, text: str) -> dict[str, Any] | None:
    value = scalar(text)
    return {"value": value} if isinstance(value, int | float) and not isinstance(value, bool) else None


def _regex(parser: Parser, text: str) -> dict[str, Any] | None:
    match = _linear(parser.pattern).search(text.encode(errors="replace").decode()[:MAX_TEXT])
    return None if match is None else {k: scalar(v) for k, v in match.groupdict().items() if v is not None}


def _text(parser: Parser, text: str) -> dict[str, Any] | None:
    return {"value": text}


_PARSERS: Final = {
    "json": _json,
    "csv": _csv,
    "key_value": _key_value,
    "number": _number,
    "regex": _regex,
    "text": _text,
}

_NAMES: Final = {
    "json": "JSON",
    "csv": "a line of the configured columns",
    "key_value": "a list of key=value",
    "number": "a number",
    "regex": "matched by the configured pattern",
    "text": "text",
}
