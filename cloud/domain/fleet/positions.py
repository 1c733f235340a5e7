"""Positions in lists of machines, which are also page tokens. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Final

MAX_TEXT: Final = 2000
"""Most characters of a position as text."""


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a machine in an order: part of the order, value that sorts before the name, name, id."""

    part: str
    value: str | int
    name: str
    machine: str


def position_text(position: Position) -> str:
    """Return a position as text for addresses."""
    text = json.dumps([position.part, position.value, position.name, position.machine], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_position(text: str) -> Position | None:
    """Parse the result of `position_text`; None for anything else, which stands for the first page."""
    if not text or len(text) > MAX_TEXT:
        return None
    try:
        part, value, name, machine = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        f"{part}{value}{name}{machine}".encode()  # no database stores half of a surrogate pair
    except (binascii.Error, ValueError, TypeError, RecursionError):
        return None
    texts = all(isinstance(each, str) for each in (part, name, machine))
    number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 60
    return Position(part, value, name, machine) if texts and (number or isinstance(value, str)) else None
