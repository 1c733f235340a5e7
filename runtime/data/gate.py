"""Whether captured data may leave the machine now, and why not. Pure.

Facts of the published service: with `selective_syncer_name` a sensor is asked at each sync interval, and data goes only
while its reading `should_sync` is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

KEY: Final = "should_sync"
NO_CLOUD: Final = "this machine has no cloud: captured files stay"


@dataclass(frozen=True, slots=True)
class Gate:
    """What the sensor says; `reason` is for people."""

    is_open: bool
    reason: str


OPEN: Final = Gate(True, "")
DISABLED: Final = Gate(False, "sync_disabled is set")


def waiting(sensor: str) -> Gate:
    """While the sensor is not there."""
    return Gate(False, f"the sensor {sensor} is not ready")


def answered(sensor: str, readings: Mapping[str, Any]) -> Gate:
    """What readings mean: only a true `should_sync` opens the gate."""
    if KEY not in readings:
        return Gate(False, f"the sensor {sensor} has no reading {KEY!r}")
    value = readings[KEY]
    if not isinstance(value, bool):
        return Gate(False, f"{KEY} of the sensor {sensor} is {value!r}, neither true nor false")
    return Gate(value, f"{KEY} of the sensor {sensor} is {'true' if value else 'false'}")


def failed(sensor: str, error: Exception) -> Gate:
    """When it could not be asked."""
    return Gate(False, f"the sensor {sensor} failed: {error}")
