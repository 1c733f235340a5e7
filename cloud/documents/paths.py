"""Dotted paths in a configuration. Resources in a list are addressed by name: `components.arm.attributes.speed`.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schema.decoding.depth import MAX_DEPTH
from schema.errors import ErrorKind, MachineError


def changed(document: Any, path: str, value: Any) -> Any:
    """Return a copy of `document` with `value` at `path`; None removes the value. Unaffected values are shared.

    Missing objects along the path are created; list items must exist, by name or by index. Raise MachineError (INVALID,
    NOT_FOUND) that names the part of the path.
    """
    words = path.split(".")
    if not all(words) or len(words) > MAX_DEPTH:
        raise MachineError(
            f"{path[:200]!r} is not a valid path",
            kind=ErrorKind.INVALID,
            remedy="use a path such as components.arm.attributes.x",
        )
    return _changed(document, words, value, "")


def _changed(found: Any, words: list[str], value: Any, where: str) -> Any:
    word, rest = words[0], words[1:]
    here = f"{where}.{word}" if where else word
    if isinstance(found, Mapping):
        copy = dict(found)
        if rest:
            copy[word] = _changed(found.get(word, {}), rest, value, here)
        elif value is None:
            copy.pop(word, None)
        else:
            copy[word] = value
        return copy
    if isinstance(found, Sequence) and not isinstance(found, str):
        index = _index(found, word, here)
        items = list(found)
        if rest:
            items[index] = _changed(items[index], rest, value, here)
        elif value is None:
            del items[index]
        else:
            items[index] = value
        return items
    raise MachineError(
        f"{where} is {found!r}, which contains no further values",
        kind=ErrorKind.INVALID,
        remedy=f"change {where} as a whole",
    )


def _index(items: Sequence[Any], word: str, here: str) -> int:
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and word in (item.get("name"), item.get("id")):
            return index
    if (number := index_of(word)) is not None and number < len(items):
        return number
    names = [str(item.get("name")) for item in items if isinstance(item, Mapping) and item.get("name")]
    raise MachineError(
        f"there is no {here}", kind=ErrorKind.NOT_FOUND, remedy=f"existing names: {', '.join(names[:10]) or 'none'}"
    )


def index_of(word: str) -> int | None:
    """Return the index in a path segment; None for a name."""
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else None
