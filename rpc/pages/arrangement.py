"""The arrangement of the cards of a page, as its script sends it: `{"hidden": [...], "order": [...]}`. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

from schema import ConfigError
from schema.decoding import parse_json

FIELDS: Final = ("hidden", "order")
NAMES: Final = 500  # in each field
CHARACTERS: Final = 200  # in a name
SIZE: Final = 256 * 1024  # bytes, enough for all names


def arrangement_of(body: bytes) -> str:
    """Return an arrangement as compact JSON. ConfigError, with the path of the mistake, if it is not one."""
    if len(body) > SIZE:
        raise ConfigError("", f"this is longer than {SIZE} bytes", remedy="send an arrangement of cards")
    value = parse_json(body)
    if not isinstance(value, dict) or value.keys() != set(FIELDS):
        remedy = f"send an object with {' and '.join(FIELDS)}"
        raise ConfigError("", "this is not an arrangement of cards", remedy=remedy)
    return json.dumps({name: _names(name, value[name]) for name in FIELDS}, ensure_ascii=False, separators=(",", ":"))


def _names(field: str, names: Any) -> list[str]:
    """Return the names of a field."""
    if not isinstance(names, list):
        raise ConfigError(field, "is not a list", value=type(names).__name__, remedy="send the names of cards")
    if len(names) > NAMES:
        raise ConfigError(field, f"has {len(names)} names", value=len(names), remedy=f"send at most {NAMES}")
    for at, name in enumerate(names):
        if not isinstance(name, str) or not 0 < len(name) <= CHARACTERS or not name.isprintable():
            remedy = f"send text of 1 to {CHARACTERS} printable characters"
            raise ConfigError(f"{field}.{at}", "is not the name of a card", value=str(name)[:40], remedy=remedy)
    return list(dict.fromkeys(names))
