"""Sensor `ads1115`: voltages measured by an ADS1115 or ADS1015 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine import Attributes, Extra, Sensor, Value, model
from hal import Registers
from models.chips.ads1115 import chip as ads1115
from models.chips.ads1115.attributes import Ads1115Config
from models.chips.ads1115.datasheet import MODELS
from models.chips.common import channels
from models.chips.common.device import I2cDevice


@model("rdk:builtin:ads1115")
class Ads1115(I2cDevice[ads1115.Ads1115], Sensor):
    """One reading per channel, measured on request one after the other and limited to full scale."""

    Config: ClassVar[type[Attributes]] = Ads1115Config

    def chip_of(self, registers: Registers) -> ads1115.Ads1115:
        """Create the driver of the configured chip."""
        config: Ads1115Config = self.attributes
        model = MODELS[config.chip]
        return ads1115.Ads1115(registers, model, config.full_scale_v, config.samples_per_sec)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Convert each channel once."""
        async with self.chip() as chip:
            return await channels.readings(self.attributes.read(), chip.volts)
