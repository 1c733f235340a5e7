"""Sensor `ads1115`: voltages by an ADS1115 or ADS1015 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from catalogue.chips.ads1115 import Ads1115Config
from hal.chips import ads1115
from hal.registers import Registers
from runtime.builtin.chips import channels
from runtime.builtin.chips.device import I2cDevice
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value


class Ads1115(I2cDevice[ads1115.Ads1115], Sensor):
    """A reading for each channel, measured one after the other when asked; beyond full scale it is full scale."""

    Config: ClassVar[type[Attributes]] = Ads1115Config

    def chip_of(self, registers: Registers) -> ads1115.Ads1115:
        """Either chip with its settings."""
        config: Ads1115Config = self.attributes
        model = ads1115.MODELS[config.chip]
        return ads1115.Ads1115(registers, model, config.full_scale_v, config.samples_per_sec)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """One conversion for each channel."""
        async with self.chip() as chip:
            return await channels.readings(self.attributes.read(), chip.volts)
