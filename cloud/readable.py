"""What a document may hold so that every client can read it again: pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from schema.errors import ErrorKind, MachineError

MAX_DEPTH: Final = 32
"""Objects and lists inside each other. Libraries of protobuf read 100 messages inside each other; an object of a Struct
takes three of them."""


def check_readable(document: Mapping[str, Any]) -> None:
    """INVALID, naming the place, for what JSON or the protocol cannot say: numbers that are not finite, halves of
    characters, and more than MAX_DEPTH objects and lists inside each other.
    """
    waiting: list[tuple[Any, tuple[str, ...]]] = [(document, ())]
    while waiting:
        found, where = waiting.pop()
        if isinstance(found, float) and not math.isfinite(found):
            raise _unreadable(where, f"{found} is no number of JSON", "write a number, or leave it out")
        if isinstance(found, str):
            _check_text(found, where)
        elif isinstance(found, Mapping | list | tuple):
            if len(where) >= MAX_DEPTH:
                text = f"more than {MAX_DEPTH} objects and lists are inside each other"
                raise _unreadable(where, text, "make it flatter: clients cannot read it")
            for name, value in _items(found):
                _check_text(name, where)
                waiting.append((value, (*where, name)))


def _items(found: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(found, Mapping):
        yield from found.items()
    else:
        yield from ((str(number), value) for number, value in enumerate(found))


def _check_text(text: str, where: tuple[str, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        said = f"{text[:40]!a} has half a character (\\ud800 to \\udfff)"
        raise _unreadable(where, said, "write both halves, or none") from None


def _unreadable(where: tuple[str, ...], text: str, remedy: str) -> MachineError:
    place = ".".join(where).encode("ascii", "backslashreplace").decode()
    return MachineError(f"{place[:120] or 'the document'}: {text}", kind=ErrorKind.INVALID, remedy=remedy)
