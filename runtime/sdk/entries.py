"""Decodes the configuration of a resource in the module protocol. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine import Attributes, Resource
from runtime.sdk.offers import OfferedDrivers
from schema import DEFAULT_NAMESPACE, ConfigError, ConfigErrors, decode_attributes, whole_numbers
from schema.decoding import DecodingReport
from schema.document import RESOURCE_TYPES, ResourceEntry, decode_resource

_SECTIONS: Final = {kind: section for section, kind in RESOURCE_TYPES.items()}
_COPIED_KEYS: Final = ("name", "model", "attributes", "depends_on")


def read_entry(config: Mapping[str, Any]) -> ResourceEntry:
    """Return the entry; raises ConfigError with a path within the entry, such as `attributes.pin`."""
    api = config.get("api") or f"{config.get('namespace') or DEFAULT_NAMESPACE}:component:{config.get('type', '')}"
    raw: dict[str, Any] = {key: config[key] for key in _COPIED_KEYS if config.get(key)} | {"api": api}
    raw["attributes"] = whole_numbers(config.get("attributes") or {})
    level = (config.get("log_configuration") or {}).get("level")
    if level:
        raw["log_configuration"] = {"level": level}
    report = DecodingReport()
    section: Any = _SECTIONS.get(api.split(":")[1] if api.count(":") == 2 else "", "components")
    entry = decode_resource(raw, section, "", report)
    if entry is None:
        raise report.problems[0] if len(report.problems) == 1 else ConfigErrors(report.problems)
    return entry


def read_attributes(
    entry: ResourceEntry, offers: OfferedDrivers
) -> tuple[type[Resource], Attributes, tuple[ConfigError, ...]]:
    """Return the driver's class, its attributes, and warnings for unknown keys; raises ConfigError."""
    cls = offers.find(entry.api, entry.model)
    attributes, warnings = decode_attributes(cls.Config, entry.attributes, path="attributes")
    return cls, attributes, warnings
