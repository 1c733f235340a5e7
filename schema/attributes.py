"""A driver's attributes: from the document's free-form object to the driver's own typed class, and to a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from schema.conform import conform
from schema.errors import ConfigError, ConfigErrors
from schema.report import Report

StructT = TypeVar("StructT", bound=msgspec.Struct)


def decode(cls: type[StructT], raw: Mapping[str, Any], *, path: str) -> tuple[StructT, tuple[ConfigError, ...]]:
    """The attributes as an instance of `cls`, and a warning for each key that nothing reads.

    Raise ConfigError (ConfigErrors if there are several) with the exact path under `path`, the value as it stands
    (masked if it is secret) and what would be right. An int serves as a float; a string never serves as a number.
    """
    report = Report()
    instance = conform(cls, raw, path, report)
    if instance is None:
        raise report.problems[0] if len(report.problems) == 1 else ConfigErrors(report.problems)
    return instance, tuple(report.warnings)


def json_schema(cls: type[msgspec.Struct]) -> dict[str, Any] | None:
    """The JSON Schema of the attributes that `cls` reads; None if it reads none."""
    if not msgspec.structs.fields(cls):
        return None
    schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(cls)))  # tuples become lists
    return schema
