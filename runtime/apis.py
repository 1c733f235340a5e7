"""The base class of each API, by import path: nothing is imported until somebody needs it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from schema.names import API

if TYPE_CHECKING:
    from runtime.resource import Resource

_CLASSES: Final = {
    "component": {
        "arm": "Arm",
        "audio_in": "AudioIn",
        "audio_out": "AudioOut",
        "base": "Base",
        "board": "Board",
        "button": "Button",
        "camera": "Camera",
        "encoder": "Encoder",
        "gantry": "Gantry",
        "generic": "Generic",
        "gripper": "Gripper",
        "input_controller": "InputController",
        "motor": "Motor",
        "movement_sensor": "MovementSensor",
        "pose_tracker": "PoseTracker",
        "power_sensor": "PowerSensor",
        "sensor": "Sensor",
        "servo": "Servo",
        "switch": "Switch",
    },
    "service": {
        "data_manager": "DataManager",
        "discovery": "DiscoveryService",
        "generic": "GenericService",
        "mlmodel": "MLModel",
        "sensors": "Sensors",
        "shell": "ShellService",
        "vision": "Vision",
    },
}

BASES: Final[Mapping[API, str]] = MappingProxyType(
    {
        API("rdk", kind, subtype): f"runtime.{kind}s.{subtype}:{cls}"
        for kind, classes in _CLASSES.items()
        for subtype, cls in classes.items()
    }
)
"""`module:Class` of every API that drivers can be written for."""


def base_of(api: API) -> type[Resource] | None:
    """The base class of an API, imported now if it was not; None for an API that has none."""
    path = BASES.get(api)
    if path is None:
        return None
    module, _, name = path.partition(":")
    found: type[Resource] = getattr(importlib.import_module(module), name)
    return found
