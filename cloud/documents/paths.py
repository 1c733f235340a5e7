"""Dotted paths in a configuration. Resources in a list are addressed by name: `components.arm.attributes.speed`.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from schema import ErrorKind, MachineError
from schema.decoding import MAX_DEPTH

LONGEST: Final = 200
"""Characters of a path in `values_of`: a long key is in the paths of all values below it."""


def changed(document: Any, path: str, value: Any) -> Any:
    """Return a copy of `document` with `value` at `path`; None removes the value. Unaffected values are shared.

    Missing objects along the path are created; list items must exist, by name or by index. Raise MachineError (INVALID,
    NOT_FOUND) that names the part of the path.
    """
    names = path.split(".")
    if not all(names) or len(names) > MAX_DEPTH:
        raise MachineError(
            f"{path[:200]!r} is not a valid path",
            kind=ErrorKind.INVALID,
            remedy="use a path such as components.arm.attributes.x",
        )
    return _changed(document, names, value, "")


def _changed(container: Any, names: list[str], value: Any, where: str) -> Any:
    name, remaining = names[0], names[1:]
    item_path = f"{where}.{name}" if where else name
    if isinstance(container, Mapping):
        copy = dict(container)
        if remaining:
            copy[name] = _changed(container.get(name, {}), remaining, value, item_path)
        elif value is None:
            copy.pop(name, None)
        else:
            copy[name] = value
        return copy
    if isinstance(container, Sequence) and not isinstance(container, str):
        index = _index(container, name, item_path)
        items = list(container)
        if remaining:
            items[index] = _changed(items[index], remaining, value, item_path)
        elif value is None:
            del items[index]
        else:
            items[index] = value
        return items
    raise MachineError(
        f"{where} is {container!r}, which contains no further values",
        kind=ErrorKind.INVALID,
        remedy=f"change {where} as a whole",
    )


def _index(items: Sequence[Any], name: str, item_path: str) -> int:
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and name in (item.get("name"), item.get("id")):
            return index
    if (number := index_of(name)) is not None and number < len(items):
        return number
    names = [str(item.get("name")) for item in items if isinstance(item, Mapping) and item.get("name")]
    raise MachineError(
        f"there is no {item_path}",
        kind=ErrorKind.NOT_FOUND,
        remedy=f"existing names: {', '.join(names[:10]) or 'none'}",
    )


def index_of(segment: str) -> int | None:
    """Return the index in a path segment; None for a name."""
    return int(segment) if segment.isascii() and segment.isdigit() and len(segment) < 10 else None


def values_of(document: Mapping[str, Any], limit: int) -> list[tuple[str, Any]]:
    """Return the first `limit` values that are neither objects nor lists, with their paths, in the document's order.

    Items of lists without name and id, and keys that a path cannot contain, are left out. Paths of at most MAX_DEPTH
    segments and LONGEST characters only.
    """
    values: list[tuple[str, Any]] = []
    pending: list[tuple[tuple[str, ...], Any]] = [((), document)]
    while pending and len(values) < limit:
        names, value = pending.pop()
        if isinstance(value, Mapping):
            inner = list(value.items())
        elif isinstance(value, list):
            inner = [(each.get("name") or each.get("id"), each) for each in value if isinstance(each, Mapping)]
        elif value is not None:
            path = ".".join(names)
            if len(path) <= LONGEST:
                values.append((path, value))
            continue
        else:
            continue
        usable = [(key, each) for key, each in inner if isinstance(key, str) and key and "." not in key]
        if len(names) < MAX_DEPTH:
            pending += [((*names, key), each) for key, each in reversed(usable)]
    return values
