"""Permission to upload captured data, and the reason. Pure.

As in the published service: with `selective_syncer_name`, a sensor is read at each sync interval, and data is uploaded
only while its reading `should_sync` is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

KEY: Final = "should_sync"
NO_CLOUD: Final = "this machine has no cloud: captured files stay on this computer"


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether uploads are allowed, and the reason for people."""

    is_open: bool
    reason: str


OPEN: Final = Gate(True, "")
DISABLED: Final = Gate(False, "sync_disabled is set")


def waiting(sensor: str) -> Gate:
    """Return the gate while the sensor is not ready: closed."""
    return Gate(False, f"the sensor {sensor} is not ready")


def answered(sensor: str, readings: Mapping[str, Any]) -> Gate:
    """Return the gate for the sensor's readings. Only a true `should_sync` opens it."""
    if KEY not in readings:
        return Gate(False, f"the sensor {sensor} has no reading {KEY!r}")
    value = readings[KEY]
    if not isinstance(value, bool):
        return Gate(False, f"{KEY} of the sensor {sensor} is {value!r}, neither true nor false")
    return Gate(value, f"{KEY} of the sensor {sensor} is {'true' if value else 'false'}")


def failed(sensor: str, error: Exception) -> Gate:
    """Return the gate after the sensor could not be read: closed."""
    return Gate(False, f"the sensor {sensor} failed: {error}")
