"""Formats tables, states and values as text for a terminal. Pure."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from support.text.words import plain, span

COLOURS: Final[Mapping[str, str]] = {
    "ready": "32",
    "running": "32",
    "configuring": "34",
    "initializing": "34",
    "unhealthy": "31",
    "removing": "33",
    "stopping": "33",
    "unconfigured": "2",
}
"""SGR parameters (ECMA-48) by state."""


_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # Bidi_Control


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, colour: bool = False) -> list[str]:
    """Return lines with aligned columns; the last column is not padded. With `colour`, states are coloured."""
    cells = [[clean(cell) for cell in row] for row in rows]
    lines = [list(head), *cells]
    widths = [max(width(line[index]) for line in lines) for index in range(len(head))]
    return [_line(line, widths, colour=colour and index > 0) for index, line in enumerate(lines)]


def _line(cells: Sequence[str], widths: Sequence[int], *, colour: bool) -> str:
    padded = []
    for index, (cell, column_width) in enumerate(zip(cells, widths, strict=True)):
        padding = "" if index == len(cells) - 1 else " " * (column_width - width(cell))
        padded.append((paint(cell) if colour else cell) + padding)
    return "  ".join(padded).rstrip()


def paint(text: str) -> str:
    """Return a state in its colour; other text is unchanged."""
    code = COLOURS.get(text)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def clean(text: str) -> str:
    """Replace control characters and those that change the direction of text: text from outside must not break a table,
    control the terminal, or appear as something else (Unicode TR 36, 3.6)."""
    return "".join(char if char not in _BIDI and unicodedata.category(char) != "Cc" else " " for char in text)


def width(text: str) -> int:
    """Return the number of terminal columns that the text occupies."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def value_lines(value: object) -> str:
    """Format a result for people: indented JSON, or plain text."""
    return clean_lines(value) if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)


def clean_lines(text: str) -> str:
    """Apply `clean` to each line."""
    return "\n".join(clean(line) for line in text.splitlines())


def one_line(value: object) -> str:
    """Format a result for programs: one line of JSON."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def since(moment: datetime | None, now: datetime) -> str:
    """Return the time since `moment` as text; empty if it is None."""
    return span((now - moment).total_seconds()) if moment else ""
