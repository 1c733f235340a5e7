"""A driver's attributes: from the document's free-form object to the driver's own typed class, and to a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

from schema.conform import conform
from schema.errors import ConfigError, ConfigErrors
from schema.report import Report, join

StructT = TypeVar("StructT", bound=msgspec.Struct)


class Attributes(msgspec.Struct, kw_only=True, frozen=True):
    """Base of a driver's configuration class.

    Unknown keys are accepted with a warning that names them; a wrong type is an error that names the path. Override
    `requires` and `uses` to name the resources this one needs.
    """

    NOT_BUILT: ClassVar[Mapping[str, str]] = {}
    """Keys of the reference that would change what the driver does and are refused, each with the missing feature."""
    OTHER_NAMES: ClassVar[Mapping[str, str]] = {}
    """Further names of keys, as the reference writes them."""

    def requires(self) -> Iterable[str]:
        """Names of resources that must be ready before this one starts, simple or full."""
        return ()

    def uses(self) -> Iterable[str]:
        """Names of resources that are passed if present; this one restarts when they appear, change or vanish.

        `rdk:component:sensor/*` means every resource of that API in the document. Resources that only single calls name
        need not be dependencies: `Resource.others` has them, and this one does not wait for them or restart with them.
        """
        return ()


def decode(cls: type[StructT], raw: Mapping[str, Any], *, path: str) -> tuple[StructT, tuple[ConfigError, ...]]:
    """The attributes as an instance of `cls`, and a warning for each key that nothing reads.

    Raise ConfigError (ConfigErrors if there are several) with the exact path under `path`, the value as it stands
    (masked if it is secret) and what would be right. An int serves as a float; a string never serves as a number.
    A key of `NOT_BUILT` is an error, one of `OTHER_NAMES` stands for the key that it names.
    """
    report = Report()
    read = dict(raw)
    for key, feature in getattr(cls, "NOT_BUILT", {}).items():
        if key in read:
            del read[key]
            report.problem(join(path, key), f"not built: {feature}", remedy="remove the key")
    for other, key in getattr(cls, "OTHER_NAMES", {}).items():
        if other in read and key in read:
            report.problem(join(path, other), f"is another name of {key!r}, which is given too", remedy="keep one")
        elif other in read:
            read[key] = read.pop(other)
    instance = conform(cls, read, path, report)
    if instance is None or report.problems:
        raise report.problems[0] if len(report.problems) == 1 else ConfigErrors(report.problems)
    return instance, tuple(report.warnings)


def json_schema(cls: type[msgspec.Struct]) -> dict[str, Any] | None:
    """The JSON Schema of the attributes that `cls` reads; None if it reads none."""
    if not msgspec.structs.fields(cls):
        return None
    schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(cls)))  # tuples become lists
    return schema
