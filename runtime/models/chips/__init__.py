"""Models of chips on I2C and SPI buses."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:board", "rdk:builtin:pca9685"): "runtime.models.chips.pca9685:Pca9685",
    ("rdk:component:generic", "rdk:builtin:at24"): "runtime.models.chips.at24:At24",
    ("rdk:component:movement_sensor", "rdk:builtin:mpu6050"): "runtime.models.chips.mpu6050:Mpu6050",
    ("rdk:component:power_sensor", "rdk:builtin:ina219"): "runtime.models.chips.ina219:Ina219",
    ("rdk:component:power_sensor", "rdk:builtin:ina226"): "runtime.models.chips.ina226:Ina226",
    ("rdk:component:sensor", "rdk:builtin:ads1115"): "runtime.models.chips.ads1115:Ads1115",
    ("rdk:component:sensor", "rdk:builtin:bme280"): "runtime.models.chips.bme280:Bme280",
    ("rdk:component:sensor", "rdk:builtin:lm75"): "runtime.models.chips.lm75:Lm75",
    ("rdk:component:sensor", "rdk:builtin:mcp3008"): "runtime.models.chips.mcp3008:Mcp3008",
    ("rdk:component:sensor", "rdk:builtin:sht3x"): "runtime.models.chips.sht3x:Sht3x",
    ("rdk:component:sensor", "rdk:builtin:tmp102"): "runtime.models.chips.tmp102:Tmp102",
}
"""`(API, model)` -> `module:class`."""
