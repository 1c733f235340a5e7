"""Attributes of `mcp3008`. Pure."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from models.chips.common import channel_attributes as channels
from models.chips.common.channel_attributes import Channel
from models.chips.mcp3008.datasheet import MODELS, MOST_HZ
from schema import Attributes

PAIRS: Final = ("0-1", "1-0", "2-3", "3-2", "4-5", "5-4", "6-7", "7-6")  # DS21295D, table 5-2


class Mcp3008Config(Attributes, kw_only=True, frozen=True):
    """Attributes of an MCP3004, MCP3008, MCP3204 or MCP3208."""

    spi_bus: str = "0"  # number (0) or path (/dev/spidev0.0) of the bus
    chip_select: Annotated[int, msgspec.Meta(ge=0)] = 0  # number of the chip select line
    chip: Literal["mcp3004", "mcp3008", "mcp3204", "mcp3208"] = "mcp3008"  # chip type
    reference_v: Annotated[float, msgspec.Meta(gt=0)] = 3.3  # voltage at the pin VREF
    max_hz: Annotated[int, msgspec.Meta(gt=0)] = MOST_HZ  # maximum clock frequency of the bus (Hz)
    channels: tuple[Channel, ...] = ()  # channels to read; default: all inputs against ground

    def __post_init__(self) -> None:
        channels.check(self.channels, self.inputs())

    def inputs(self) -> tuple[str, ...]:
        """Return the names of the chip's inputs, single and in pairs."""
        count = MODELS[self.chip].channels
        return (*map(str, range(count)), *PAIRS[:count])

    def read(self) -> tuple[Channel, ...]:
        """Return the channels to read, with the default applied."""
        return self.channels or channels.each(MODELS[self.chip].channels)
