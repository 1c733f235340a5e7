"""The arguments of a call, as others may see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rpc.pages.words import plain
from schema.secrets import masked

TEXT: Final = 200  # characters of a text that are shown
ITEMS: Final = 20  # of a list or a mapping


def shown_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values with secrets masked, and long ones cut; without streams of requests and what is None."""
    given = {name: value for name, value in arguments.items() if value is not None and not hasattr(value, "__anext__")}
    found: dict[str, Any] = _cut(masked(plain(given)))
    return found


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT else f"{value[:TEXT]}... ({len(value)} characters)"
    if isinstance(value, dict):
        found = {key: _cut(item) for key, item in list(value.items())[:ITEMS]}
        return found if len(value) <= ITEMS else {**found, "...": f"{len(value)} in all"}
    if isinstance(value, list):
        return [*map(_cut, value[:ITEMS]), *([f"... ({len(value)} in all)"] if len(value) > ITEMS else [])]
    return value
