"""Table of the models of serial, USB, video and input devices."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:sensor", "rdk:builtin:serial_line"): "runtime.models.devices.serial_line:SerialLine",
    ("rdk:component:movement_sensor", "rdk:builtin:nmea"): "runtime.models.devices.nmea:Nmea",
    ("rdk:component:movement_sensor", "rdk:builtin:gps-nmea"): "runtime.models.devices.nmea:Nmea",
    ("rdk:component:camera", "rdk:builtin:webcam"): "runtime.models.devices.webcam:Webcam",
    ("rdk:component:input_controller", "rdk:builtin:gamepad"): "runtime.models.devices.gamepad:Gamepad",
    ("rdk:component:generic", "rdk:builtin:serial_port"): "runtime.models.devices.serial_port:SerialPort",
    ("rdk:component:generic", "rdk:builtin:usb"): "runtime.models.devices.usb:Usb",
}
"""`(API, model)` -> `module:class`."""
