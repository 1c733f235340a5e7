"""Models that need nothing but the pins of a board."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:encoder", "rdk:builtin:incremental"): "runtime.builtin.gpio.encoder:IncrementalEncoder",
    ("rdk:component:encoder", "rdk:builtin:single"): "runtime.builtin.gpio.encoder:SingleEncoder",
    ("rdk:component:motor", "rdk:builtin:gpio"): "runtime.builtin.gpio.motor:GpioMotor",
}
"""`(API, model)` -> `module:class`."""
