"""Entries of `components` and `services`: name, model, attributes and dependencies of a resource."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from schema.decoding.conversion import conform, wrong_type
from schema.decoding.report import DecodingReport, detached, join, shown
from schema.document.log import LogConfiguration
from schema.document.section import Section
from schema.errors import ConfigError
from schema.names import API, DEFAULT_FAMILY, DEFAULT_NAMESPACE, Model, ResourceName, check_name
from schema.secrets import masked
from schema.space.frames import Frame, decode_frame

T = TypeVar("T")

ResourceSection: TypeAlias = Literal["components", "services"]

RESOURCE_TYPES: Final[Mapping[str, str]] = {"components": "component", "services": "service"}
"""API type of the entries of each section."""

BUILTIN: Final = "builtin"  # default name and model of a service


class ServiceConfig(Section, frozen=True, kw_only=True):
    """Settings of a service for this resource, such as the readings that the data manager captures."""

    type: str
    """Subtype (`data_manager`) or API triple of the service."""
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    """Settings, defined by the service."""


@dataclass(frozen=True, slots=True, repr=False)
class ResourceEntry:
    """Configured resource. The position in the document does not affect equality."""

    name: ResourceName
    model: Model
    attributes: Mapping[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()  # short or full names, as written
    frame: Frame | None = None
    log_configuration: LogConfiguration | None = None
    service_configs: tuple[ServiceConfig, ...] = ()
    path: str = field(default="", compare=False)  # position, such as components.3

    __hash__ = None  # type: ignore[assignment]

    @property
    def api(self) -> API:
        """API of the resource."""
        return self.name.api

    @property
    def version(self) -> str:
        """Digest of the settings from which the resource is built. It changes only if the resource must be rebuilt.

        Frame, log level and service settings are excluded, because they are not passed to the resource.
        """
        parts = (str(self.name), str(self.model), dict(self.attributes), sorted(self.depends_on))
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"ResourceEntry({self.name}, {self.model}, attributes={masked(self.attributes)}, path={self.path!r})"


_KEYS: Final = (
    "name",
    "api",
    "namespace",
    "type",
    "model",
    "attributes",
    "depends_on",
    "frame",
    "log_configuration",
    "service_configs",
)


class _ModelObject(msgspec.Struct):
    name: str
    namespace: str = DEFAULT_NAMESPACE
    model_family: str = DEFAULT_FAMILY


class _ApiObject(msgspec.Struct):
    subtype: str
    namespace: str = DEFAULT_NAMESPACE
    type: str = ""


def decode_resource(raw: Any, section: ResourceSection, path: str, report: DecodingReport) -> ResourceEntry | None:
    """Decode one entry; None if it has errors, all of which are reported."""
    if not isinstance(raw, Mapping):
        wrong_type(raw, "an object", path, report)
        return None
    before = len(report.problems)
    for key in raw.keys() - set(_KEYS):
        report.unknown_key(path, key, _KEYS, value=raw[key])
    api = _api(raw, section, path, report)
    name = _name(raw, section, path, report)
    model = _model(raw, section, path, report)
    frame = None if raw.get("frame") is None else decode_frame(raw["frame"], join(path, "frame"), report)
    attributes = _member(raw, "attributes", dict[str, Any], path, report) or {}
    depends_on = _depends_on(raw, name, path, report)
    log_configuration = _member(raw, "log_configuration", LogConfiguration, path, report)
    service_configs = _member(raw, "service_configs", tuple[ServiceConfig, ...], path, report) or ()
    if len(report.problems) > before or api is None or name is None or model is None:
        return None
    full = ResourceName(api, name)
    return ResourceEntry(full, model, attributes, depends_on, frame, log_configuration, service_configs, path)


def readable_name(raw: Any, section: ResourceSection) -> ResourceName | None:
    """Return the full name of an entry that may have other errors; None if the name or API is invalid."""
    if not isinstance(raw, Mapping):
        return None
    ignored = DecodingReport()
    api = _api(raw, section, "", ignored)
    name = _name(raw, section, "", ignored)
    return None if api is None or name is None else ResourceName(api, name)


def _member(raw: Mapping[str, Any], key: str, kind: Any, path: str, report: DecodingReport) -> Any:
    return None if raw.get(key) is None else conform(kind, raw[key], join(path, key), report)


def _name(raw: Mapping[str, Any], section: ResourceSection, path: str, report: DecodingReport) -> str | None:
    name = raw.get("name")
    if name is None or name == "":
        if section == "services":
            return BUILTIN
        report.problem(path, "'name' is missing", remedy="add 'name': a string")
        return None
    if not isinstance(name, str):
        wrong_type(name, "a string", join(path, "name"), report)
        return None
    return _collect(functools.partial(check_name, name, path=join(path, "name")), report)


def _collect(read: Callable[[], T], report: DecodingReport) -> T | None:
    try:
        return read()
    except ConfigError as error:
        report.problems.append(detached(error))
        return None


def _api(raw: Mapping[str, Any], section: ResourceSection, path: str, report: DecodingReport) -> API | None:
    kind = RESOURCE_TYPES[section]
    api_path = join(path, "api")
    value = raw.get("api")
    if value is None or value == "":
        return _legacy_api(raw, kind, path, report)
    if isinstance(value, Mapping):
        parts = conform(_ApiObject, value, api_path, report)
        if parts is None:
            return None
        value = f"{parts.namespace or DEFAULT_NAMESPACE}:{parts.type or kind}:{parts.subtype}"
    elif not isinstance(value, str):
        wrong_type(value, "a string such as rdk:component:motor", api_path, report)
        return None
    api: API | None = _collect(functools.partial(API.parse, value, path=api_path), report)
    if api is not None and api.type != kind:
        section_name = next((name for name, word in RESOURCE_TYPES.items() if word == api.type), None)
        remedy = (
            f"move the entry to {section_name!r}" if section_name else f"write {api.namespace}:{kind}:{api.subtype}"
        )
        report.problem(api_path, f"{shown(value, api_path)} is not a {kind}", value=value, remedy=remedy)
        return None
    return api


def _legacy_api(raw: Mapping[str, Any], kind: str, path: str, report: DecodingReport) -> API | None:
    subtype, namespace = raw.get("type"), raw.get("namespace")
    if subtype is None or subtype == "":
        report.problem(path, "'api' is missing", remedy=f"add 'api', such as rdk:{kind}:generic")
        return None
    for key, value in (("type", subtype), ("namespace", namespace)):
        if value is not None and not isinstance(value, str):
            wrong_type(value, "a string", join(path, key), report)
            return None
    text = f"{namespace or DEFAULT_NAMESPACE}:{kind}:{subtype}"
    return _collect(functools.partial(API.parse, text, path=join(path, "type")), report)


def _model(raw: Mapping[str, Any], section: ResourceSection, path: str, report: DecodingReport) -> Model | None:
    model_path = join(path, "model")
    value = raw.get("model")
    if value is None or value == "":
        if section == "services":
            return Model(DEFAULT_NAMESPACE, DEFAULT_FAMILY, BUILTIN)
        report.problem(path, "'model' is missing", remedy="add 'model': a word or namespace:family:name")
        return None
    if isinstance(value, Mapping):
        parts = conform(_ModelObject, value, model_path, report)
        if parts is None:
            return None
        value = f"{parts.namespace or DEFAULT_NAMESPACE}:{parts.model_family or DEFAULT_FAMILY}:{parts.name}"
    elif not isinstance(value, str):
        wrong_type(value, "a word or namespace:family:name", model_path, report)
        return None
    return _collect(functools.partial(Model.parse, value, path=model_path), report)


def _depends_on(raw: Mapping[str, Any], own: str | None, path: str, report: DecodingReport) -> tuple[str, ...]:
    list_path = join(path, "depends_on")
    names = _member(raw, "depends_on", tuple[str, ...], path, report) or ()
    for index, name in enumerate(names):
        entry_path = join(list_path, index)
        if not name:
            report.problem(entry_path, "is empty", value=name, remedy="name a resource or remove the entry")
        elif "/" in name:
            _collect(functools.partial(ResourceName.parse, name, path=entry_path), report)
        if name and name == own:
            report.problem(entry_path, "the resource depends on itself", value=name, remedy="remove the entry")
    return tuple(dict.fromkeys(names))
