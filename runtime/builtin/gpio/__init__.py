"""Models that need nothing but the pins of a board."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:base", "rdk:builtin:wheeled"): "runtime.builtin.gpio.wheeled:WheeledBase",
    ("rdk:component:button", "rdk:builtin:gpio"): "runtime.builtin.gpio.button:GpioButton",
    ("rdk:component:encoder", "rdk:builtin:incremental"): "runtime.builtin.gpio.encoder:IncrementalEncoder",
    ("rdk:component:encoder", "rdk:builtin:single"): "runtime.builtin.gpio.encoder:SingleEncoder",
    ("rdk:component:input_controller", "rdk:builtin:gpio"): "runtime.builtin.gpio.input_controller:GpioInputController",
    ("rdk:component:motor", "rdk:builtin:gpio"): "runtime.builtin.gpio.motor:GpioMotor",
    ("rdk:component:motor", "rdk:builtin:gpiostepper"): "runtime.builtin.gpio.stepper:GpioStepper",
    ("rdk:component:movement_sensor", "rdk:builtin:wheeled-odometry"): "runtime.builtin.gpio.odometry:WheeledOdometry",
    ("rdk:component:sensor", "rdk:builtin:gpio_input"): "runtime.builtin.gpio.input_sensor:GpioInput",
    ("rdk:component:servo", "rdk:builtin:gpio"): "runtime.builtin.gpio.servo:GpioServo",
    ("rdk:component:switch", "rdk:builtin:gpio"): "runtime.builtin.gpio.switch:GpioSwitch",
    ("rdk:component:switch", "rdk:builtin:relay"): "runtime.builtin.gpio.relay:Relay",
}
"""`(API, model)` -> `module:class`."""
