"""Models that ship with the machine: a table of import paths, so that a machine pays only for what it configures."""

from __future__ import annotations

from typing import Final

from runtime.builtin import board, chips, data, devices, discovery, gpio, shell, vision

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
        (f"rdk:component:{api}", "rdk:builtin:fake"): f"runtime.builtin.fake.{api}:{cls}"
        for api, cls in _COMPONENTS.items()
    },
    ("rdk:service:discovery", "rdk:builtin:fake"): "runtime.builtin.fake.discovery:FakeDiscovery",
    ("rdk:service:generic", "rdk:builtin:fake"): "runtime.builtin.fake.generic_service:FakeGenericService",
    ("rdk:service:sensors", "rdk:builtin:builtin"): "runtime.builtin.sensors:AllSensors",
    ("rdk:service:sensors", "rdk:builtin:fake"): "runtime.builtin.sensors:AllSensors",
    ("rdk:component:camera", "rdk:builtin:image_file"): "runtime.builtin.image_file:ImageFile",
    ("rdk:component:sensor", "rdk:builtin:command"): "runtime.builtin.command:CommandSensor",
    ("rdk:component:sensor", "rdk:builtin:host"): "runtime.builtin.host:HostSensor",
    **board.MODELS,
    **gpio.MODELS,
    **chips.MODELS,
    **data.MODELS,
    **devices.MODELS,
    **discovery.MODELS,
    **shell.MODELS,
    **vision.MODELS,
}
"""`(API, model)` -> `module:class`."""
