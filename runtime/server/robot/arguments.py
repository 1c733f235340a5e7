"""Formats the arguments of a call for other clients."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from schema import masked, shortened
from support.text.words import plain

TEXT: Final = 200  # maximum number of characters shown of a text
ITEMS: Final = 20  # maximum number of items shown of a list or mapping


def shown_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as plain values with secrets masked and long values cut, without None and request streams."""
    present = {
        name: value for name, value in arguments.items() if value is not None and not hasattr(value, "__anext__")
    }
    shown: dict[str, Any] = masked(_cut(plain(present)))
    return shown


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT else f"{shortened(value, TEXT)} ({len(value)} characters)"
    if isinstance(value, dict):
        items = {shortened(key, TEXT): _cut(value[key]) for key in islice(value, ITEMS)}
        return items if len(value) <= ITEMS else {**items, "...": f"{len(value)} in all"}
    if isinstance(value, list):
        return [*map(_cut, value[:ITEMS]), *([f"... ({len(value)} in all)"] if len(value) > ITEMS else [])]
    return value
