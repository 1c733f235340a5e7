"""Power sensor `ina219`: an INA219 on an I2C bus, which measures voltage, current through a shunt, and power."""

from __future__ import annotations

from typing import ClassVar

from catalogue.chips.ina219 import Ina219Config
from engine import Attributes
from hal.chips import ina2xx
from runtime.models.chips.common.ina2xx import InaPowerSensor


class Ina219(InaPowerSensor):
    """Measures 0 to 26 V at the pin IN- in steps of 4 mV. The shunt limits the accuracy of current and power."""

    Config: ClassVar[type[Attributes]] = Ina219Config
    Driver = ina2xx.Ina219
