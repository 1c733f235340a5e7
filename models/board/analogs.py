"""Analog inputs of a board: channels of converters on SPI or I2C."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from statistics import fmean
from typing import Final

import trio

from engine import AnalogReading
from hal import HalError, Hardware, Registers
from hal.ports import SpiDevice
from models.board.attributes import Analog
from models.chips.ads1115 import chip as ads1115
from models.chips.ads1115.datasheet import MODELS as ADS
from models.chips.mcp3008 import chip as mcp3008
from models.chips.mcp3008.datasheet import MODELS as MCP

RATE: Final = {"ads1115": 860, "ads1015": 3300}  # conversions per second: the fastest rates, 1.2 and 0.3 ms each


class AnalogInput:
    """One analog input. A reading is a new conversion, or the mean of conversions in the background."""

    def __init__(self, entry: Analog, convert: Callable[[], Awaitable[int]], scale: tuple[float, float, float]) -> None:
        self.name = entry.name
        self._convert = convert
        self._scale = scale
        self._samples: deque[int] = deque(maxlen=max(1, entry.average_over_ms * entry.samples_per_sec // 1000))
        self.period = 1 / entry.samples_per_sec if entry.average_over_ms else None
        self._failure: HalError | None = None

    async def read(self) -> AnalogReading:
        """Return the counts and their scale. HalError if the conversion, or the last one in the background, failed."""
        if self.period is None or not self._samples:
            value = float(await self._convert())
        else:
            await trio.lowlevel.checkpoint()
            if self._failure is not None:
                raise self._failure
            value = fmean(self._samples)
        return AnalogReading(round(value), *self._scale)

    async def sample(self, hardware: Hardware) -> None:
        """Convert periodically until cancelled. `read` raises errors of the bus, which do not end the sampling."""
        assert self.period is not None
        async with hardware.ticks(self.period) as ticks:
            async for _ in ticks:
                try:
                    self._samples.append(await self._convert())
                    self._failure = None
                except HalError as error:
                    self._failure = error


async def open_analogs(
    entries: Sequence[Analog], hardware: Hardware, owner: str, stack: AsyncExitStack
) -> dict[str, AnalogInput]:
    """Open every converter once, on `stack`, and return the inputs by name. HalError if one cannot be opened."""
    devices: dict[tuple[str, int], SpiDevice] = {}
    chips: dict[tuple[str, int], tuple[Registers, trio.Lock]] = {}
    inputs = {}
    for entry in entries:
        if entry.on_i2c:
            address = str(entry.i2c_bus), entry.i2c_address
            if address not in chips:
                bus = await stack.enter_async_context(hardware.i2c(address[0]))
                stack.enter_context(hardware.reservations.hold(owner, f"{bus.name} address 0x{address[1]:02x}"))
                chips[address] = Registers(bus, address[1]), trio.Lock()
            inputs[entry.name] = _on_i2c(entry, *chips[address])
        else:
            address = str(entry.spi_bus), int(entry.chip_select)
            if address not in devices:
                devices[address] = await stack.enter_async_context(hardware.spi(*address, mcp3008.SETTINGS))
            inputs[entry.name] = _on_spi(entry, devices[address])
    return inputs


def _on_spi(entry: Analog, device: SpiDevice) -> AnalogInput:
    model = MCP[entry.converter]
    channel = int(entry.input)
    scale = 0.0, entry.reference_v, entry.reference_v / model.counts
    return AnalogInput(entry, lambda: mcp3008.read_channel(device, channel, model), scale)


def _on_i2c(entry: Analog, registers: Registers, lock: trio.Lock) -> AnalogInput:
    model = ADS[entry.converter]
    rate = RATE[entry.converter]
    single = entry.input.isdigit()

    async def convert() -> int:
        async with lock:
            count = await ads1115.read_channel(registers, entry.input, entry.full_scale_v, rate, model)
        return max(0, count) if single else count  # a grounded input may read slightly below zero

    low = 0.0 if single else -entry.full_scale_v
    return AnalogInput(entry, convert, (low, entry.full_scale_v, ads1115.step(entry.full_scale_v, model.bits)))
