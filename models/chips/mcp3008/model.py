"""Sensor `mcp3008`: voltages measured by an MCP3004, MCP3008, MCP3204 or MCP3208 on an SPI bus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import trio

from engine import Attributes, Context, Extra, Sensor, Started, Value, model
from hal import Fault, HalError
from hal.ports import SpiDevice
from models.chips.common import channels
from models.chips.mcp3008 import chip as mcp3008
from models.chips.mcp3008.attributes import PAIRS, Mcp3008Config
from models.chips.mcp3008.datasheet import MODELS


@model("rdk:builtin:mcp3008")
class Mcp3008(Sensor):
    """One reading per channel, measured on request one after the other. A pair is never below 0."""

    Config: ClassVar[type[Attributes]] = Mcp3008Config

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._send_loss, self._receive_loss = trio.open_memory_channel[HalError](1)

    async def run(self, *, task_status: Started) -> None:
        """Run the driver; ready when every channel has been read once. HalError (GONE) if the bus disappears."""
        config: Mcp3008Config = self.attributes
        settings = replace(mcp3008.SETTINGS, max_hz=config.max_hz)
        with self.reserve(f"SPI bus {config.spi_bus} chip select {config.chip_select}"):
            async with self.hardware.spi(config.spi_bus, config.chip_select, settings) as device:
                self._device: SpiDevice = device
                await channels.readings(config.read(), self._volts)
                task_status.started()
                raise await self._receive_loss.receive()

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Convert each channel once."""
        try:
            return await channels.readings(self.attributes.read(), self._volts)
        except HalError as error:
            if error.fault is Fault.GONE:
                try:
                    self._send_loss.send_nowait(error)
                except trio.WouldBlock:
                    pass
            raise

    async def _volts(self, name: str) -> float:
        config: Mcp3008Config = self.attributes
        model = MODELS[config.chip]
        if "-" in name:
            count = await mcp3008.read_channel(self._device, PAIRS.index(name), model, differential=True)
        else:
            count = await mcp3008.read_channel(self._device, int(name), model)
        return model.volts(count, config.reference_v)
