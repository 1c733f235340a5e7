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
class UploadGate:
    """Whether uploads are allowed, and the reason for people."""

    is_open: bool
    reason: str


OPEN: Final = UploadGate(True, "")
DISABLED: Final = UploadGate(False, "sync_disabled is set")


def waiting(sensor: str) -> UploadGate:
    """Return the gate while the sensor is not ready: closed."""
    return UploadGate(False, f"the sensor {sensor} is not ready")


def answered(sensor: str, readings: Mapping[str, Any]) -> UploadGate:
    """Return the gate for the sensor's readings. Only a true `should_sync` opens it."""
    if KEY not in readings:
        return UploadGate(False, f"the sensor {sensor} has no reading {KEY!r}")
    value = readings[KEY]
    if not isinstance(value, bool):
        return UploadGate(False, f"{KEY} of the sensor {sensor} is {value!r}, neither true nor false")
    return UploadGate(value, f"{KEY} of the sensor {sensor} is {'true' if value else 'false'}")


def failed(sensor: str, error: Exception) -> UploadGate:
    """Return the gate after the sensor could not be read: closed."""
    return UploadGate(False, f"the sensor {sensor} failed: {error}")
