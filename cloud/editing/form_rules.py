"""What the descriptions of attributes tell about their values: units, pins, names of resources. Pure.

Attributes are plain types, so that drivers are easy to write. A test lists what these rules recognize, so that a new
attribute that they misread is seen in a review.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

API_SUMMARIES: Final[Mapping[str, str]] = {
    "arm": "Several joints in a row that move a tool",
    "audio_in": "A microphone",
    "audio_out": "A loudspeaker",
    "base": "A vehicle: wheels that drive and turn together",
    "board": "The computer's header with its pins, PWM and analog inputs",
    "button": "Something that can be pressed",
    "camera": "Pictures, videos and point clouds",
    "base_remote_control": "Drives a base with a gamepad",
    "data_manager": "Captures data and uploads it",
    "discovery": "Finds connected devices and suggests their configuration",
    "encoder": "Counts the turns of a shaft",
    "gantry": "Rails that move a tool in a straight line",
    "generic": "A device with its own commands",
    "gripper": "Opens, closes and holds",
    "input_controller": "A gamepad, or buttons and sticks",
    "mlmodel": "Runs a trained model",
    "motion": "Plans movements without collisions",
    "motor": "Turns a shaft, with or without an encoder",
    "navigation": "Drives a base by itself, by GPS",
    "movement_sensor": "Position, speed, compass or orientation, such as GPS or IMU",
    "pose_tracker": "Follows bodies in space",
    "power_sensor": "Voltage, current and power",
    "sensor": "Readings such as temperature, humidity or distance",
    "sensors": "Readings of several sensors together",
    "servo": "Turns to an angle",
    "shell": "A terminal and files of the machine",
    "slam": "A map, and where the machine is in it",
    "switch": "Has positions: a relay, a selector, a light",
    "vision": "Finds objects in pictures",
    "world_state_store": "Objects in space",
}
"""One line about each API, for people who look for what their hardware needs."""


MODEL_SUMMARIES: Final[Mapping[tuple[str, str], str]] = {
    ("board", "linux"): "The pins of this computer: Raspberry Pi, Jetson or another Linux board",
    ("board", "pca9685"): "16 PWM outputs on I2C (PCA9685)",
    ("camera", "webcam"): "A camera on USB",
    ("camera", "image_file"): "Pictures from files",
    ("camera", "transform"): "Another camera's pictures: turned, cut, scaled or with detections",
    ("discovery", "hardware"): "Finds what is connected to this computer",
    ("generic", "at24"): "An EEPROM on I2C (AT24)",
    ("generic", "serial_port"): "Any device on a serial port",
    ("generic", "usb"): "Any device on USB",
    ("generic", "mqtt"): "Sends readings to an MQTT broker, such as Home Assistant",
    ("input_controller", "gamepad"): "A gamepad on USB or Bluetooth",
    ("movement_sensor", "gps-nmea"): "A GPS receiver (NMEA)",
    ("movement_sensor", "nmea"): "A GPS receiver (NMEA)",
    ("movement_sensor", "mpu6050"): "Acceleration and rotation (MPU-6050, MPU-6500, MPU-9250)",
    ("movement_sensor", "wheeled-odometry"): "Position of a wheeled base from its motors",
    ("power_sensor", "ina219"): "Voltage and current (INA219)",
    ("power_sensor", "ina226"): "Voltage and current (INA226)",
    ("sensor", "ads1115"): "Analog inputs on I2C (ADS1115, ADS1015)",
    ("sensor", "bme280"): "Temperature, humidity and pressure (BME280, BMP280)",
    ("sensor", "command"): "Readings that a program prints",
    ("sensor", "host"): "Processor, memory, disk and temperature of this computer",
    ("sensor", "lm75"): "Temperature (LM75)",
    ("sensor", "mcp3008"): "Analog inputs on SPI (MCP3008 and similar)",
    ("sensor", "serial_line"): "Readings that a device sends line by line",
    ("sensor", "sht3x"): "Temperature and humidity (SHT3x)",
    ("sensor", "tmp102"): "Temperature (TMP102)",
}
"""One line about models, by API and name, where the description of their attributes says too little."""


class Pins(StrEnum):
    """Whether texts are pins of the board that the entry names, or interrupts of it."""

    NONE = ""
    PIN = "pin"
    INTERRUPT = "interrupt"


_UNIT_OF_KEY: Final[Mapping[str, str]] = {
    "mm": "mm",
    "ms": "ms",
    "msec": "ms",
    "us": "µs",
    "usec": "µs",
    "s": "s",
    "sec": "s",
    "hz": "Hz",
    "deg": "°",
    "rpm": "rpm",
    "px": "px",
    "mb": "MB",
    "gb": "GB",
    "mins": "min",
    "mbps": "Mbit/s",
    "millis": "ms",
    "percent": "%",
    "v": "V",
    "a": "A",
    "ohms": "Ω",
    "bytes": "B",
}
_SPECIAL_UNITS: Final[Mapping[str, str]] = {
    "acceleration_rpm_per_s": "rpm/s",
    "speed_deg_per_s": "°/s",
    "mm_per_s": "mm/s",
    "baud_rate": "baud",
}
_UNIT_IN_TEXT: Final = re.compile(r"\((mm|ms|µs|s|Hz|rpm|degrees|V|A|W|ohms|dB|bytes)\)|\A(mm|Hz|ms|bytes)\b")
_SYMBOLS: Final[Mapping[str, str]] = {"degrees": "°", "ohms": "Ω", "bytes": "B"}


def unit_of(key: str, about: str) -> str:
    """Return the symbol of a field's unit; empty if neither its key nor its description has one."""
    if key in _SPECIAL_UNITS:
        return _SPECIAL_UNITS[key]
    if match := _UNIT_IN_TEXT.search(about):
        unit = match[1] or match[2]
        return _SYMBOLS.get(unit, unit)
    words = key.split("_")
    return _UNIT_OF_KEY.get(words[-1], "") if len(words) > 1 else ""


_DURATION: Final = re.compile(r"(?:_timeout|_interval|_window|\Awatchdog)\Z")


def is_duration(key: str, types: Collection[str]) -> bool:
    """Return whether a value is a duration, such as "30s": a text or a number, of which the schema tells nothing."""
    return bool(_DURATION.search(key)) and not set(types) - {"string", "number", "integer"}


_PIN: Final = re.compile(
    r"\bpins? of (?:that|the) board\b|\bthe pin\b|\bpin of the input\b|\Aoutputs whose\b|\Apins driven\b"
)
_INTERRUPT: Final = re.compile(r"\bdigital interrupts? of\b")
_SWITCH_OF_ADDRESS: Final = re.compile(r"\bset by the pins?\b")


def pins_of(key: str, about: str, outer: Pins) -> Pins:
    """Return whether a field is a pin; `outer` tells it of the field that contains this one."""
    if _SWITCH_OF_ADDRESS.search(about):
        return Pins.NONE
    if _INTERRUPT.search(about):
        return Pins.INTERRUPT
    return Pins.PIN if _PIN.search(about) and key != "name" else outer


_APIS: Final[Mapping[str, str]] = {
    "arm": "rdk:component:arm",
    "base": "rdk:component:base",
    "board": "rdk:component:board",
    "camera": "rdk:component:camera",
    "encoder": "rdk:component:encoder",
    "input controller": "rdk:component:input_controller",
    "motor": "rdk:component:motor",
    "movement sensor": "rdk:component:movement_sensor",
    "sensor": "rdk:component:sensor",
    "mlmodel": "rdk:service:mlmodel",
}
_ABOUT_NAME: Final = re.compile(
    r"\A(?:names? of (?:(?:the|a|its|another) )?(?:simulated )?|the )(?P<kind>(?:input |movement )?[a-z]+?)s?"
    r"(?:\Z|(?= (?:that|with|on|whose|of calls|service)\b)|(?=[,;]))"
)
_MOTORS: Final = ("left", "right", "left_motors", "right_motors")


def reference_of(key: str, about: str) -> str:
    """Return the API of the resource that a field names; empty if it names none."""
    if key in _MOTORS:
        return _APIS["motor"]
    if key == "sensors":
        return "*"
    if key == "sensor_name":
        return _APIS["sensor"]
    match = _ABOUT_NAME.match(about)
    return _APIS.get(match["kind"], "") if match else ""
