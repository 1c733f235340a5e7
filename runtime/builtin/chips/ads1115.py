"""Sensor `ads1115`: voltages by an ADS1115 or ADS1015 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from hal.chips import ads1115
from hal.registers import Registers
from runtime.builtin.chips import channels
from runtime.builtin.chips.channels import Channel
from runtime.builtin.chips.device import I2cAttributes, I2cDevice
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value


class Ads1115Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an ADS1115 or ADS1015."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x48"  # 0x48 to 0x4b, by the pin ADDR
    chip: Literal["ads1115", "ads1015"] = "ads1115"  # which one it is
    full_scale_v: float = 4.096  # 6.144, 4.096, 2.048, 1.024, 0.512 or 0.256; no input may exceed the supply
    samples_per_sec: int = 128  # ads1115: 8, 16, 32, 64, 128, 250, 475, 860; ads1015: 128, 250, 490, 920 to 3300
    channels: tuple[Channel, ...] = ()  # what is read; all four inputs against ground if nothing is said

    def __post_init__(self) -> None:
        super().__post_init__()
        model = ads1115.MODELS[self.chip]
        ads1115.config_word("0", self.full_scale_v, self.samples_per_sec, model)
        channels.check(self.channels, tuple(ads1115.INPUTS))

    def read(self) -> tuple[Channel, ...]:
        """What is read."""
        return self.channels or channels.each(ads1115.CHANNELS)


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
