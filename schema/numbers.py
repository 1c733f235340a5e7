"""Restoration of whole numbers, which the protocol transmits as doubles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EXACT: Final = 2.0**53  # doubles represent every whole number up to this


def whole_numbers(value: Any) -> Any:
    """Convert whole floats to int at any depth of a JSON-like value, such as 5.0 to 5."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < EXACT else value
    if isinstance(value, Mapping):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [whole_numbers(item) for item in value]
    return value
