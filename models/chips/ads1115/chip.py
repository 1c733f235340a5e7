"""ADS1115 (16 bits) and ADS1015 (12 bits): analog-to-digital converters on I2C.

Texas Instruments SBAS444D (ADS111x, January 2018) and SBAS473E (ADS101x, January 2018).
"""

from __future__ import annotations

from typing import Final

import trio

from hal import Fault, HalError, Registers
from models.chips.ads1115.datasheet import NO_COMPARATOR, SINGLE_SHOT, START, AdsChip, config_word
from models.chips.common.chip import Chip

CONVERSION: Final = 0x00  # SBAS444D, table 6
CONFIG: Final = 0x01
TOLERANCE: Final = 1.1  # the data rate may be 10 % low (section 7.5, "data rate variation")
WAKE: Final = 50e-6  # s from power-down to the start of a conversion (section 9.4.2.1: 25 to 30 µs)
MAX_POLLS: Final = 8  # reads of the status until an unfinished conversion counts as hung


def count_of(raw: int, bits: int) -> int:
    """Return the signed count in the conversion register of a chip with `bits` bits."""
    count = raw >> (16 - bits)
    return count - (1 << bits) if count >> (bits - 1) else count


def step(full_scale: float, bits: int) -> float:
    """Return the volts of one count: SBAS444D, table 3; SBAS473E, table 3."""
    return full_scale / (1 << (bits - 1))


def volts(count: int, full_scale: float, bits: int) -> float:
    """Convert a signed count to volts."""
    return count * step(full_scale, bits)


async def power_down(registers: Registers) -> None:
    """Stop continuous conversions that another program may have started; they would interfere with single ones."""
    await registers.write_int(CONFIG, SINGLE_SHOT | NO_COMPARATOR, 2)


async def read_channel(registers: Registers, inputs: int | str, full_scale: float, rate: int, model: AdsChip) -> int:
    """Measure a channel (0 to 3, against ground) or a pair ("0-1") once; return a signed count.

    The chip keeps no settings between calls, so it works again after a loss of power. Calls must not overlap: hold a
    lock. The chip must be in power-down mode, as after power-up and `power_down`. Takes one conversion time, 1/rate.
    Raises ValueError for values that the chip does not support; HalError for errors of the bus, with Fault.BUS if
    another chip answers and Fault.TIMEOUT if the conversion does not finish.
    """
    word = config_word(str(inputs), full_scale, rate, model)
    await registers.write_int(CONFIG, word, 2)
    await trio.sleep(WAKE + TOLERANCE / rate)
    for _ in range(MAX_POLLS):
        reads = await registers.read_int(CONFIG, 2)
        if (reads ^ word) & ~START & 0xFFFF:
            raise HalError(
                f"{registers} is not an {model.title}, or lost power: its configuration reads 0x{reads:04x} "
                f"after 0x{word:04x} was written",
                Fault.BUS,
                remedy="check wiring and power, and that this chip is at the address",
            )
        if reads & START:
            return count_of(await registers.read_int(CONVERSION, 2), model.bits)
    raise HalError(f"{registers}: the {model.title} does not finish a conversion", Fault.TIMEOUT)


class Ads1115(Chip):
    """An ADS1115 or ADS1015 with fixed range and rate. It has no identity register."""

    def __init__(self, registers: Registers, model: AdsChip, full_scale: float, rate: int) -> None:
        super().__init__(registers)
        self.model = model
        self.title = model.title
        self.full_scale = full_scale
        self.rate = rate

    async def identify(self) -> None:
        """Check that the configuration is neither all zeros nor all ones; `configure` checks that it converts."""
        value = await self.registers.read_int(CONFIG, 2)
        if value in (0x0000, 0xFFFF):
            raise self.wrong_chip(f"its configuration reads 0x{value:04x}")

    async def configure(self) -> None:
        """Stop conversions of other programs, then make one conversion to check that the chip works."""
        await power_down(self.registers)
        await self.read_channel(0)

    async def read_channel(self, inputs: int | str) -> int:
        """Measure a channel (0 to 3, against ground) or a pair ("0-1") once; return a signed count."""
        return await read_channel(self.registers, inputs, self.full_scale, self.rate, self.model)

    async def volts(self, inputs: int | str) -> float:
        """Measure a channel or pair in volts."""
        return volts(await self.read_channel(inputs), self.full_scale, self.model.bits)
