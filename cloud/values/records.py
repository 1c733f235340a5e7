"""Fields of the two kinds of records: dataclasses, and Structs, which the published messages are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict


def fields_of(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of a record by name, without those of records inside it; None for any other value."""
    if isinstance(value, Struct):
        return asdict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None
