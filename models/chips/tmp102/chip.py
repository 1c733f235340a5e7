"""TMP102, temperature sensor (Texas Instruments SBOS397H, December 2018)."""

from __future__ import annotations

from typing import Final

import trio

from models.chips.common.chip import Chip

TEMPERATURE: Final = 0x00  # pointer addresses, section "Pointer Register"
CONFIGURATION: Final = 0x01
FIXED: Final = 0x600F  # section "Configuration Register": converter resolution reads 11, the last four bits read 0
FIXED_VALUE: Final = 0x6000
READ_ONLY: Final = 0x8020  # one-shot/ready and alert: not settings
SETTINGS: Final = 0x60D0  # continuous, 8 conversions a second (CR 11), extended mode (EM 1); power-up leaves 0x60A0
STEP: Final = 0.0625  # °C of one count, section "Temperature Register"
FIRST_VALUE: Final = 0.125 + 0.035  # s: the period at 8 Hz and the longest conversion, "Electrical Characteristics"


def celsius(raw: int) -> float:
    """Convert a temperature register to degrees Celsius; bit 0 says whether it has 13 bits (extended mode) or 12.

    See the tables "12-Bit Temperature Data Format" and "13-Bit Temperature Data Format".
    """
    bits = 13 if raw & 1 else 12
    count = raw >> (16 - bits)
    return (count - (1 << bits) if count >> (bits - 1) else count) * STEP


class Tmp102(Chip):
    """A TMP102. It has no identity register; `identify` checks the constant bits of the configuration."""

    title = "TMP102"

    async def identify(self) -> None:
        """Check the constant bits of the configuration."""
        value = await self.registers.read_int(CONFIGURATION, 2)
        if value & FIXED != FIXED_VALUE:
            raise self.wrong_chip(f"its configuration reads 0x{value:04x}")

    async def configure(self) -> None:
        """Start continuous conversion; return after the first conversion with these settings."""
        await self.registers.write_int(CONFIGURATION, SETTINGS, 2)
        value = await self.registers.read_int(CONFIGURATION, 2)
        if (value ^ SETTINGS) & ~READ_ONLY & 0xFFFF:
            raise self.not_stored("the configuration", SETTINGS, value)
        await trio.sleep(FIRST_VALUE)

    async def configured(self) -> bool:
        """Return whether the settings are unchanged; after power-up the rate is another, and the mode is normal."""
        value = await self.registers.read_int(CONFIGURATION, 2)
        return (value ^ SETTINGS) & ~READ_ONLY & 0xFFFF == 0

    async def temperature(self) -> float:
        """Return degrees Celsius, -55 to 150, in steps of 0.0625."""
        return celsius(await self.registers.read_int(TEMPERATURE, 2))
