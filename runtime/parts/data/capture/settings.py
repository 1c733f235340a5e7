"""Capture settings of resources: `service_configs` of type `data_manager`. An error affects only one method.

Pure: from a document to the captures that it configures.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from engine.planning import name_here
from runtime.parts.data.files.messages import CaptureSource
from runtime.parts.data.methods import Method, find
from schema import ConfigError, ResourceName, decode_attributes
from schema.decoding import join
from schema.document import MachineDocument, Remote

TYPES: Final = frozenset({"data_manager", "rdk:service:data_manager"})
QUEUE: Final = 250  # readings; reference value


class CaptureMethod(msgspec.Struct, kw_only=True, frozen=True):
    """An element of `capture_methods`."""

    method: str  # name of the captured method, such as Readings
    capture_frequency_hz: float = 0.0  # readings per second; 0 captures nothing
    additional_params: dict[str, Any] = {}  # arguments of the method
    disabled: bool = False  # captures nothing
    capture_queue_size: int = 0  # maximum readings waiting for the disk; 0 means 250
    capture_buffer_size: int = 0  # accepted for compatibility; readings are written at once
    tags: tuple[str, ...] = ()  # tags of this method, in addition to those of the service
    name: str = ""  # full name of the resource, if the entry is a remote
    recent_data_store: Any = None  # for the cloud; ignored here
    cache_size_kb: float = 0.0  # for the micro server; ignored here

    def __post_init__(self) -> None:
        if not 0 <= self.capture_frequency_hz < math.inf:
            raise ConfigError(
                "capture_frequency_hz",
                f"{self.capture_frequency_hz:g} is not a frequency",
                value=self.capture_frequency_hz,
                remedy="write readings per second, or 0 to capture nothing",
            )
        for name in ("capture_queue_size", "capture_buffer_size"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    name, f"{getattr(self, name)} is negative", value=getattr(self, name), remedy="write 0 or more"
                )


@dataclass(frozen=True, slots=True)
class ConfiguredCapture:
    """The configured capture of a method, or the error in its configuration."""

    key: str  # rdk:component:sensor/t Readings
    resource: str  # full name on this machine
    path: str
    source: CaptureSource | None = None  # without tags
    method: Method | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    frequency: float = 0.0
    queue: int = QUEUE
    tags: tuple[str, ...] = ()
    only_these_tags: bool = False  # if false, the tags of the service come first
    fault: ConfigError | None = None

    @property
    def active(self) -> bool:
        """Whether it has a node: it takes readings, or its error is to be shown."""
        return self.fault is not None or self.frequency > 0

    @property
    def version(self) -> tuple[Hashable, ...]:
        """A value that changes if the capture must be restarted."""
        return (
            self.resource,
            msgspec.json.encode(dict(self.arguments), order="sorted"),
            self.frequency,
            self.queue,
            self.tags,
            self.only_these_tags,
            str(self.fault or ""),
        )


def configured_captures(document: MachineDocument) -> list[ConfiguredCapture]:
    """Return all captures configured in `document`, in its order. A duplicate gets an error."""
    by_key: dict[str, ConfiguredCapture] = {}
    for capture in _all(document):
        if capture.key in by_key:
            first = by_key[capture.key]
            fault = ConfigError(
                capture.path, f"{capture.key} is already captured by {first.path}", remedy="remove one of the two"
            )
            capture = replace(capture, key=f"{capture.key} {capture.path}", fault=capture.fault or fault)
        by_key[capture.key] = capture
    return list(by_key.values())


def _all(document: MachineDocument) -> Iterator[ConfiguredCapture]:
    for entry in document.resources:
        for index, config in enumerate(entry.service_configs):
            if config.type in TYPES:
                path = join(entry.path, "service_configs", index, "attributes")
                yield from _methods(config.attributes, path, entry.name, None)
    for remote_path, remote in zip(document.places("remotes"), document.remotes, strict=True):
        for index, raw in enumerate(remote.service_configs):
            if raw.get("type") in TYPES:
                path = join(remote_path, "service_configs", index, "attributes")
                yield from _methods(raw.get("attributes") or {}, path, None, remote)


def _methods(
    attributes: Any, path: str, resource: ResourceName | None, remote: Remote | None
) -> Iterator[ConfiguredCapture]:
    items = attributes.get("capture_methods") if isinstance(attributes, Mapping) else None
    list_path = join(path, "capture_methods")
    if items is None:
        return
    if not isinstance(items, (list, tuple)):
        fault = ConfigError(list_path, "is not a list", value=items, remedy="write a list of objects with 'method'")
        yield ConfiguredCapture(_fallback_key(resource, remote, list_path), str(resource or ""), list_path, fault=fault)
        return
    for index, item in enumerate(items):
        yield _parsed(item, join(list_path, index), resource, remote)


def _fallback_key(resource: ResourceName | None, remote: Remote | None, path: str) -> str:
    return f"{resource or (remote.name if remote else '')} {path}"


def _parsed(item: Any, path: str, resource: ResourceName | None, remote: Remote | None) -> ConfiguredCapture:
    key, local_name = _fallback_key(resource, remote, path), resource
    try:
        if not isinstance(item, Mapping):
            raise ConfigError(path, "is not an object", value=item, remedy="write an object with 'method'")
        setting, _ = decode_attributes(CaptureMethod, item, path=path)
        remote_name = resource or ResourceName.parse(setting.name, path=join(path, "name"))
        local_name = remote_name if remote is None else name_here(remote_name, remote.name, remote.prefix)
        key = f"{local_name} {setting.method}{_key_suffix(setting.additional_params)}"
        return _capture_of(setting, path, remote_name, local_name, key)
    except ConfigError as error:
        return ConfiguredCapture(key, str(local_name or ""), path, fault=error)


def _key_suffix(parameters: Mapping[str, Any]) -> str:
    return f" {msgspec.json.encode(parameters, order='sorted').decode()}" if parameters else ""


def _capture_of(
    setting: CaptureMethod, path: str, remote_name: ResourceName, local_name: ResourceName, key: str
) -> ConfiguredCapture:
    method = find(remote_name.api, setting.method, join(path, "method"))
    arguments = method.arguments(setting.additional_params, join(path, "additional_params"))
    return ConfiguredCapture(
        key,
        str(local_name),
        path,
        source=CaptureSource(
            str(remote_name.api), remote_name.short, setting.method, setting.additional_params, binary=method.binary
        ),
        method=method,
        arguments=arguments,
        frequency=0.0 if setting.disabled else setting.capture_frequency_hz,
        queue=setting.capture_queue_size or QUEUE,
        tags=setting.tags,
    )
