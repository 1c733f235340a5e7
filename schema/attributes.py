"""Attributes of drivers: decoding of a free-form object to a driver's typed class, and its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

from schema.decoding.conversion import conform
from schema.decoding.report import DecodingReport, join
from schema.errors import ConfigError, ConfigErrors

StructT = TypeVar("StructT", bound=msgspec.Struct)


class Attributes(msgspec.Struct, kw_only=True, frozen=True):
    """Base class of a driver's configuration.

    An unknown key is a warning that names the key; a wrong type is an error that names the path. Override `requires`
    and `uses` to declare the resources that this resource needs.
    """

    NOT_BUILT: ClassVar[Mapping[str, str]] = {}
    """Unsupported keys of the reference that would change the driver's behavior, and the missing feature of each.

    Such a key is an error.
    """
    OTHER_NAMES: ClassVar[Mapping[str, str]] = {}
    """Alternative names of keys, used by the reference."""

    def requires(self) -> Iterable[str]:
        """Return the short or full names of resources that must be ready before this resource starts."""
        return ()

    def uses(self) -> Iterable[str]:
        """Return the names of resources that are passed if present; this resource restarts when they change.

        It also restarts when they appear or disappear. `rdk:component:sensor/*` means every resource of that API in the
        document. Resources that are named only in calls need not be dependencies: `Resource.others` provides them
        without waiting for them or restarting with them.
        """
        return ()


def decode_attributes(
    cls: type[StructT], raw: Mapping[str, Any], *, path: str
) -> tuple[StructT, tuple[ConfigError, ...]]:
    """Decode attributes to an instance of `cls`; return it with a warning for each unknown key.

    Raises ConfigError (ConfigErrors for several errors) with the exact path below `path`, the value (masked if secret)
    and a remedy. An int is accepted as a float; a string is never accepted as a number. A key in `NOT_BUILT` is an
    error; a key in `OTHER_NAMES` is replaced by the key that it stands for.
    """
    report = DecodingReport()
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
    """Return the JSON Schema of the attributes of `cls`; None if it has no attributes."""
    if not msgspec.structs.fields(cls):
        return None
    schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(cls)))  # tuples become lists
    return schema
