"""Sensor `ads1115`: voltages measured by an ADS1115 or ADS1015 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from catalogue.chips.ads1115 import Ads1115Config
from engine import Attributes, Extra, Sensor, Value
from hal import Registers
from hal.chips import ads1115
from runtime.models.chips.common import channels
from runtime.models.chips.common.device import I2cDevice


class Ads1115(I2cDevice[ads1115.Ads1115], Sensor):
    """One reading per channel, measured on request one after the other and limited to full scale."""

    Config: ClassVar[type[Attributes]] = Ads1115Config

    def chip_of(self, registers: Registers) -> ads1115.Ads1115:
        """Create the driver of the configured chip."""
        config: Ads1115Config = self.attributes
        model = ads1115.MODELS[config.chip]
        return ads1115.Ads1115(registers, model, config.full_scale_v, config.samples_per_sec)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Convert each channel once."""
        async with self.chip() as chip:
            return await channels.readings(self.attributes.read(), chip.volts)
