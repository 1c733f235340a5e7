"""Attributes that `runtime.builtin.chips.mcp3008` reads."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from catalogue.chips import channels
from catalogue.chips.channels import Channel
from hal.chips import mcp3008
from schema.attributes import Attributes

PAIRS: Final = ("0-1", "1-0", "2-3", "3-2", "4-5", "5-4", "6-7", "7-6")  # DS21295D, table 5-2


class Mcp3008Config(Attributes, kw_only=True, frozen=True):
    """Attributes of an MCP3008 or one of its relatives."""

    spi_bus: str = "0"  # number (0) or path (/dev/spidev0.0) of the bus
    chip_select: Annotated[int, msgspec.Meta(ge=0)] = 0  # which device of the bus
    chip: Literal["mcp3004", "mcp3008", "mcp3204", "mcp3208"] = "mcp3008"  # which one it is
    reference_v: Annotated[float, msgspec.Meta(gt=0)] = 3.3  # volts at its pin VREF
    max_hz: Annotated[int, msgspec.Meta(gt=0)] = mcp3008.SETTINGS.max_hz  # clock
    channels: tuple[Channel, ...] = ()  # what is read; all inputs against ground if nothing is said

    def __post_init__(self) -> None:
        channels.check(self.channels, self.inputs())

    def inputs(self) -> tuple[str, ...]:
        """Those of the chip, alone and in pairs."""
        count = mcp3008.MODELS[self.chip].channels
        return (*map(str, range(count)), *PAIRS[:count])

    def read(self) -> tuple[Channel, ...]:
        """What is read."""
        return self.channels or channels.each(mcp3008.MODELS[self.chip].channels)
