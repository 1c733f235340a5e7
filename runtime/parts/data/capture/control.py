"""Overrides of capture settings from a sensor, at run time. Pure.

As in the published service, the sensor is read ten times per second. One of its readings is a list of overrides with
`resource_name`, `method`, and optionally `capture_frequency_hz` (0 captures nothing) and `tags`, which replace those of
the configuration. Everything else stays as configured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from runtime.parts.data.capture.settings import ConfiguredCapture
from runtime.parts.data.files.messages import CaptureSource
from runtime.parts.data.methods import find
from schema import ConfigError, ErrorKind, MachineError, ResourceName
from schema.decoding import did_you_mean

PERIOD: Final = 0.1  # seconds between readings of the sensor; published
PATH: Final = "capture_control_sensor"


@dataclass(frozen=True, slots=True)
class Override:
    """The override of one method. None means as configured."""

    resource: str  # its name, without the names of remotes
    method: str
    frequency: float | None = None  # Hz
    tags: tuple[str, ...] | None = None


def parse_overrides(readings: Mapping[str, Any], key: str) -> tuple[Override, ...]:
    """Parse the overrides in the reading `key`. Raises MachineError (INVALID)."""
    if key not in readings:
        raise _invalid(f"its readings have no {key!r}: {did_you_mean(key, readings) or 'correct the key'}")
    items = readings[key]
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes)):
        raise _invalid(f"its reading {key!r} is not a list")
    return tuple(_override(item, f"{key}.{index}") for index, item in enumerate(items))


def _override(item: Any, path: str) -> Override:
    if not isinstance(item, Mapping):
        raise _invalid(f"{path} is not an object")
    resource, method = item.get("resource_name"), item.get("method")
    if not (isinstance(resource, str) and resource and isinstance(method, str) and method):
        raise _invalid(f"{path} must have resource_name and method")
    frequency, tags = item.get("capture_frequency_hz"), item.get("tags")
    if frequency is not None and not (
        isinstance(frequency, (int, float)) and not isinstance(frequency, bool) and 0 <= frequency < math.inf
    ):
        raise _invalid(f"{path}.capture_frequency_hz is {frequency!r}, not a frequency in Hz")
    if tags is not None and not (isinstance(tags, (list, tuple)) and all(isinstance(tag, str) for tag in tags)):
        raise _invalid(f"{path}.tags is not a list of strings")
    return Override(
        resource, method, None if frequency is None else float(frequency), None if tags is None else tuple(tags)
    )


def _invalid(reason: str) -> MachineError:
    return MachineError(reason, kind=ErrorKind.INVALID)


def overridden(
    captures: Iterable[ConfiguredCapture], overrides: Iterable[Override], names: Iterable[ResourceName]
) -> tuple[list[ConfiguredCapture], list[MachineError]]:
    """Apply overrides to `captures`, and return the result and the overrides' errors.

    Overrides may also add methods of the resources in `names` that are not configured.
    """
    result = {capture.key: capture for capture in captures}
    by_name = {name.name: name for name in names} | {str(name): name for name in names}
    problems: list[MachineError] = []
    for override in overrides:
        matching = [capture for capture in result.values() if _matches(capture, override)]
        if not matching and override.frequency:
            try:
                matching = [_new(override, by_name)]
            except MachineError as error:
                problems.append(error)
        for capture in matching:
            result[capture.key] = replace(
                capture,
                frequency=capture.frequency if override.frequency is None else override.frequency,
                tags=capture.tags if override.tags is None else override.tags,
                only_these_tags=override.tags is not None,
            )
    return list(result.values()), problems


def _matches(capture: ConfiguredCapture, override: Override) -> bool:
    source = capture.source
    return (
        source is not None
        and capture.fault is None
        and source.method == override.method
        and override.resource in (source.component_name, capture.resource)
    )


def _new(override: Override, by_name: Mapping[str, ResourceName]) -> ConfiguredCapture:
    name = by_name.get(override.resource)
    if name is None:
        raise ConfigError(
            PATH, f"there is no resource {override.resource!r}", remedy=did_you_mean(override.resource, by_name)
        )
    method = find(name.api, override.method, PATH)
    method.arguments({}, PATH)
    return ConfiguredCapture(
        f"{name} {override.method}",
        str(name),
        PATH,
        source=CaptureSource(str(name.api), name.name, override.method, binary=method.binary),
        method=method,
    )
