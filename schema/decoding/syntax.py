"""JSON parser with errors that show the position and suggest a remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from schema.decoding.depth import check_depth, nested_too_deeply
from schema.decoding.report import join
from schema.errors import ConfigError

_BYTE = re.compile(r" \(byte (\d+)\)$")
_BOM: Final = b"\xef\xbb\xbf"
_CONTEXT: Final = 60  # characters of the line shown on each side of the error
_TOKEN = re.compile(r"""(?P<quote>["'])(?:(?!(?P=quote))[^\\]|\\.)*(?P<end>(?P=quote)|\\?$)|(?<=:)\s*[^\s,{}\[\]"']+""")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_PLAIN = re.compile(r"\s*(?:-?[\d.eE+-]+|true|false|null|True|False|None|NaN|Infinity|undefined)\Z")


class JSONSyntaxError(ConfigError):
    """Invalid JSON. `str(error)` ends with the line, without values, and a caret under the position."""

    def __init__(self, line: int, column: int, reason: str, *, excerpt: str, remedy: str) -> None:
        super().__init__("", f"line {line}, column {column}: {reason}", remedy=remedy)
        self.line = line  # line and column count from 1; columns are characters
        self.column = column
        self.excerpt = excerpt

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.excerpt}"


def parse_json(data: bytes) -> Any:
    """Parse JSON text.

    Raises JSONSyntaxError with line, column and excerpt if it is invalid; ConfigError if it is empty, has a number that
    is too large, or is nested too deeply (with the first keys of the path).
    """
    data = data.removeprefix(_BOM)
    if not data.strip():
        raise ConfigError("", "the document is empty", remedy="write at least {}")
    try:
        data.decode()
        value = msgspec.json.decode(data)
        check_depth(value)
        return value
    except msgspec.ValidationError:
        raise ConfigError("", "a number is too large", remedy="write a number below 1e308") from None
    except msgspec.DecodeError as error:
        message = str(error)
    except UnicodeDecodeError as error:
        raise _syntax_error(data, error.start, "a byte is not UTF-8", "save the file as UTF-8") from None
    except RecursionError:
        raise nested_too_deeply() from None
    match = _BYTE.search(message)
    lone = _lone_surrogate(data)
    if lone is not None and (match is None or "surrogate" in message):
        reason = "a surrogate pair is incomplete"
        raise _syntax_error(data, lone, reason, "write both parts, or the character itself")
    if match is None:
        raise _syntax_error(
            data, len(data.rstrip()), "the document ends too early", "close every { [ and quotation mark"
        )
    position = min(int(match[1]), len(data))
    reason = message[: match.start()].removeprefix("JSON is malformed: ")
    raise _syntax_error(data, position, reason, _guess(data, position, reason))


def repeated_keys(data: bytes) -> tuple[str, ...]:
    """Return the paths of keys that occur more than once in an object of the valid JSON `data`; the last one counts."""

    def members(pairs: list[tuple[str, Any]]) -> _Object:
        object_ = _Object(pairs)
        if len(object_) < len(pairs):
            keys = [key for key, _ in pairs]
            object_.repeated = tuple(key for key in object_ if keys.count(key) > 1)
            repeating.append(object_)
        return object_

    repeating: list[_Object] = []
    try:
        value = json.loads(data, object_pairs_hook=members, parse_int=str, parse_float=str)
        return tuple(_repeated(value, "")) if repeating else ()
    except RecursionError:
        return ()


class _Object(dict[str, Any]):
    repeated: tuple[str, ...] = ()


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Object):
        yield from (join(path, key) for key in value.repeated)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _repeated(item, join(path, key))


def _lone_surrogate(data: bytes) -> int | None:
    """Return the position of an escaped surrogate without its other half, None if there is none."""
    match = next((match for match in _ESCAPE.finditer(data) if match["lone"]), None)
    return None if match is None else match.start()


def _guess(data: bytes, position: int, reason: str) -> str:
    ahead, before = data[position : position + 2], data[:position].rstrip()
    if "trailing comma" in reason:
        return "remove the comma before the closing bracket"
    if ahead[:1] == b"'":
        return 'write strings in double quotes: "..."'
    if ahead in {b"//", b"/*"} or ahead[:1] == b"#":
        return "remove the comment: JSON does not allow comments"
    if ahead[:1] in {b"}", b"]"} and before[-1:] == b",":
        return "remove the comma before the closing bracket"
    if re.match(rb"None|True|False|NaN|Infinity|undefined", data[position : position + 9]):
        return "write true, false, null or a number"
    if ahead[:1] in {b"\n", b"\r", b"\t"} or "control" in reason:
        return "close the string with a double quote; write \\n or \\t for special characters"
    if "','" in reason or "'}'" in reason or "']'" in reason:
        return "a comma is probably missing before this"
    if "':'" in reason:
        return "write a colon between a key and its value"
    if "escape" in reason:
        return "write \\\\ for a backslash"
    if "trailing characters" in reason:
        return "remove the text after the end of the document"
    if "keys must be strings" in reason:
        return 'write keys in double quotes: "key"'
    return ""


def _syntax_error(data: bytes, position: int, reason: str, remedy: str) -> JSONSyntaxError:
    before = data[:position]
    start = before.rfind(b"\n") + 1
    end = data.find(b"\n", position)
    line = data[start : len(data) if end < 0 else end].decode(errors="replace").rstrip("\r")
    column = len(before[start:].decode(errors="replace"))
    number = before.count(b"\n") + 1
    return JSONSyntaxError(number, column + 1, reason, excerpt=_excerpt(line, column), remedy=remedy)


def _excerpt(line: str, column: int) -> str:
    """Return the line with a caret under `column`. Values are blanked, because any of them may be secret."""
    shown, caret, last = "", column, 0
    for match in _TOKEN.finditer(line):
        value = match[0]
        is_key = bool(match["end"]) and line[match.end() :].lstrip().startswith(":")
        blank = (
            value
            if is_key or _PLAIN.match(value)
            else f"{match['quote']}...{match['end'][:1]}"
            if match["quote"]
            else " ..."
        )
        if match.start() <= column < match.end():
            caret = len(shown) + match.start() - last + min(column - match.start(), len(blank) - 1)
        elif column >= match.end():
            caret -= len(value) - len(blank)
        shown += line[last : match.start()] + blank
        last = match.end()
    shown = (shown + line[last:]).replace("\t", " ")
    left = max(0, caret - _CONTEXT)
    return f"{shown[left : caret + _CONTEXT]}\n{' ' * (caret - left)}^"
