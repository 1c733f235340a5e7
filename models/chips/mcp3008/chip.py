"""MCP3004, MCP3008 and MCP3208: analog-to-digital converters on SPI.

Microchip DS21295D (MCP3004/3008, 10 bits) and DS21298E (MCP3204/3208, 12 bits).
"""

from __future__ import annotations

from typing import Final

from hal import Fault, HalError
from hal.ports import SpiDevice, SpiSettings
from models.chips.mcp3008.datasheet import MOST_HZ, McpChip

SETTINGS: Final = SpiSettings(max_hz=MOST_HZ, mode=0)
"""Mode 0 or 3 (section 6.1)."""


def request(channel: int, bits: int, *, differential: bool = False) -> bytes:
    """Return the 3-byte request for `channel`, aligned so that the answer ends with the last bit of the transfer.

    It consists of a start bit, single-ended (1) or differential (0), and three bits of channel: DS21295D, figure 6-1,
    and DS21298E, figure 6-1. Differential channels are pairs: 0 is CH0 minus CH1, 1 is CH1 minus CH0 (table 5-2).
    """
    command = 0b10000 | (0 if differential else 0b1000) | channel
    # A sample bit, a null bit and the value follow the command.
    return (command << (bits + 2)).to_bytes(3, "big")


def count_of(answer: bytes, bits: int) -> int | None:
    """Return the value in an answer to `request`; None if its null bit is not 0, because no chip drives the line."""
    value = int.from_bytes(answer, "big")
    return None if value >> bits & 1 else value & ((1 << bits) - 1)


async def read_channel(device: SpiDevice, channel: int, model: McpChip, *, differential: bool = False) -> int:
    """Measure `channel` once and return the count. HalError for errors of the bus, and if no chip drives the line.

    ValueError if the chip has no such channel.
    """
    if not 0 <= channel < model.channels:
        raise ValueError(f"a {model.title} has the channels 0 to {model.channels - 1}, not {channel}")
    answer = (await device.transfer(request(channel, model.bits, differential=differential)))[0]
    count = count_of(answer, model.bits)
    if count is None:
        raise HalError(
            f"no {model.title} answers on channel {channel}: the answer is {answer.hex(' ')}",
            Fault.NO_ACKNOWLEDGE,
            remedy="check wiring, power and chip select",
        )
    return count
