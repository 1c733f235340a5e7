"""Models that need only the pins of a board."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:base", "rdk:builtin:wheeled"): "runtime.models.wheels.wheeled:WheeledBase",
    ("rdk:component:button", "rdk:builtin:gpio"): "runtime.models.gpio.button:GpioButton",
    ("rdk:component:encoder", "rdk:builtin:incremental"): "runtime.models.gpio.encoder:IncrementalEncoder",
    ("rdk:component:encoder", "rdk:builtin:single"): "runtime.models.gpio.encoder:SingleEncoder",
    ("rdk:component:input_controller", "rdk:builtin:gpio"): "runtime.models.gpio.input_controller:GpioInputController",
    ("rdk:component:motor", "rdk:builtin:gpio"): "runtime.models.gpio.motor:GpioMotor",
    ("rdk:component:motor", "rdk:builtin:gpiostepper"): "runtime.models.gpio.stepper:GpioStepper",
    ("rdk:component:movement_sensor", "rdk:builtin:wheeled-odometry"): "runtime.models.wheels.odometry:WheeledOdometry",
    ("rdk:component:sensor", "rdk:builtin:gpio_input"): "runtime.models.gpio.input_sensor:GpioInput",
    ("rdk:component:servo", "rdk:builtin:gpio"): "runtime.models.gpio.servo:GpioServo",
    ("rdk:component:switch", "rdk:builtin:gpio"): "runtime.models.gpio.switch:GpioSwitch",
    ("rdk:component:switch", "rdk:builtin:relay"): "runtime.models.gpio.relay:Relay",
}
"""`(API, model)` -> `module:class`."""
