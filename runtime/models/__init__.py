"""The built-in models, as a table of import paths, so that a machine imports only the models that it configures."""

from __future__ import annotations

from typing import Final

from engine import FOLDERS
from runtime.models import arms, board, chips, data, devices, discovery, gpio, motion_service, shell, vision

_COMPONENTS: Final = {
    "arm": "FakeArm",
    "audio_in": "FakeAudioIn",
    "audio_out": "FakeAudioOut",
    "base": "FakeBase",
    "board": "FakeBoard",
    "button": "FakeButton",
    "camera": "FakeCamera",
    "encoder": "FakeEncoder",
    "gantry": "FakeGantry",
    "generic": "FakeGeneric",
    "gripper": "FakeGripper",
    "input_controller": "FakeInputController",
    "motor": "FakeMotor",
    "movement_sensor": "FakeMovementSensor",
    "pose_tracker": "FakePoseTracker",
    "power_sensor": "FakePowerSensor",
    "sensor": "FakeSensor",
    "servo": "FakeServo",
    "switch": "FakeSwitch",
}

BUILTIN: Final[dict[tuple[str, str], str]] = {
    **{
        (f"rdk:component:{api}", "rdk:builtin:fake"): f"runtime.models.fake.{FOLDERS.get(api, '')}{api}:{cls}"
        for api, cls in _COMPONENTS.items()
    },
    ("rdk:service:discovery", "rdk:builtin:fake"): "runtime.models.fake.discovery:FakeDiscovery",
    ("rdk:service:generic", "rdk:builtin:fake"): "runtime.models.fake.generic_service:FakeGenericService",
    ("rdk:service:sensors", "rdk:builtin:builtin"): "runtime.models.sensors:AllSensors",
    ("rdk:service:sensors", "rdk:builtin:fake"): "runtime.models.sensors:AllSensors",
    ("rdk:component:camera", "rdk:builtin:image_file"): "runtime.models.image_file:ImageFile",
    ("rdk:component:sensor", "rdk:builtin:command"): "runtime.models.command:CommandSensor",
    ("rdk:component:sensor", "rdk:builtin:host"): "runtime.models.host:HostSensor",
    **arms.MODELS,
    **board.MODELS,
    **gpio.MODELS,
    **chips.MODELS,
    **data.MODELS,
    **devices.MODELS,
    **discovery.MODELS,
    **motion_service.MODELS,
    **shell.MODELS,
    **vision.MODELS,
}
"""`(API, model)` -> `module:class`."""
