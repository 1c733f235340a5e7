"""Numbers of the protocol, which carries every one as a double."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EXACT: Final = 2.0**53  # doubles hold every whole number up to here


def whole_numbers(value: Any) -> Any:
    """`value` with 5 for 5.0, at any depth."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < EXACT else value
    if isinstance(value, Mapping):
        return {key: whole_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [whole_numbers(each) for each in value]
    return value
