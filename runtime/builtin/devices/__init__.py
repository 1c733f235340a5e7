"""Models of serial, USB, video and input devices."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:sensor", "rdk:builtin:serial_line"): "runtime.builtin.devices.serial_line:SerialLine",
    ("rdk:component:movement_sensor", "rdk:builtin:nmea"): "runtime.builtin.devices.nmea:Nmea",
    ("rdk:component:movement_sensor", "rdk:builtin:gps-nmea"): "runtime.builtin.devices.nmea:Nmea",
    ("rdk:component:camera", "rdk:builtin:webcam"): "runtime.builtin.devices.webcam:Webcam",
    ("rdk:component:input_controller", "rdk:builtin:gamepad"): "runtime.builtin.devices.gamepad:Gamepad",
    ("rdk:component:generic", "rdk:builtin:serial_port"): "runtime.builtin.devices.serial_port:SerialPort",
    ("rdk:component:generic", "rdk:builtin:usb"): "runtime.builtin.devices.usb:Usb",
}
"""`(API, model)` -> `module:class`."""
