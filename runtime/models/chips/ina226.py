"""Power sensor `ina226`: an INA226 on an I2C bus, which measures voltage, current through a shunt, and power."""

from __future__ import annotations

from typing import ClassVar

from catalogue.chips.ina226 import Ina226Config
from engine import Attributes
from hal.chips import ina2xx
from runtime.models.chips.common.ina2xx import InaPowerSensor


class Ina226(InaPowerSensor):
    """Measures 0 to 36 V at the pin VBUS in steps of 1.25 mV. The shunt limits the accuracy of current and power."""

    Config: ClassVar[type[Attributes]] = Ina226Config
    Driver = ina2xx.Ina226
