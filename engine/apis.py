"""Import paths of the base class of each API; a class is imported when it is first used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from schema import API

if TYPE_CHECKING:
    from engine.resource import Resource

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
        "base_remote_control": "BaseRemoteControl",
        "data_manager": "DataManager",
        "discovery": "DiscoveryService",
        "generic": "GenericService",
        "mlmodel": "MLModel",
        "motion": "Motion",
        "navigation": "Navigation",
        "sensors": "Sensors",
        "shell": "ShellService",
        "slam": "Slam",
        "vision": "Vision",
        "world_state_store": "WorldStateStore",
    },
}

FOLDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: f"{folder}."
        for folder, names in {
            "controls": ("board", "button", "input_controller", "switch"),
            "media": ("audio_in", "audio_out", "camera"),
            "motion": ("arm", "base", "gantry", "gripper", "motor", "servo"),
            "sensing": ("encoder", "movement_sensor", "pose_tracker", "power_sensor", "sensor"),
        }.items()
        for name in names
    }
)
"""Folder of each component API in its package, followed by a dot."""

BASES: Final[Mapping[API, str]] = MappingProxyType(
    {
        API("rdk", kind, subtype): f"engine.{kind}s.{FOLDERS.get(subtype, '')}{subtype}:{cls}"
        for kind, classes in _CLASSES.items()
        for subtype, cls in classes.items()
    }
)
"""`module:Class` of every API for which drivers can be written."""


def base_of(api: API) -> type[Resource] | None:
    """Return the base class of `api`, importing it if necessary, or None if it has none."""
    path = BASES.get(api)
    if path is None:
        return None
    module, _, name = path.partition(":")
    cls: type[Resource] = getattr(importlib.import_module(module), name)
    return cls
