"""LM75 and temperature sensors with compatible registers.

LM75: Texas Instruments (National) SNOS808P, "LM75B, LM75C Digital Temperature Sensor". The other chips differ in the
bits and duration of a conversion, see VARIANTS. The temperature is always left-justified in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import trio

from hal import Registers
from models.chips.common.chip import Chip

TEMPERATURE: Final = 0x00  # SNOS808P, table "Pointer Register"
CONFIGURATION: Final = 0x01
TWELVE_BITS: Final = 0x60  # R1 R0 of the configuration; 0 in an LM75, where these bits are reserved
COMMAND: Final = 0x80  # one-shot bit of the variants: a command, not a setting


@dataclass(frozen=True, slots=True)
class Lm75Variant:
    """A chip: the bits of a conversion, the configuration for it, and the maximum duration in seconds."""

    title: str
    bits: int
    settings: int
    conversion: float


VARIANTS: Final = {
    "lm75": Lm75Variant("LM75", 9, 0x00, 0.3),  # SNOS808P, "Temperature-to-Digital Converter Characteristics"
    "lm75b": Lm75Variant("LM75B", 11, 0x00, 0.1),  # NXP LM75B revision 6.1, table 4: period of 100 ms
    "tmp75": Lm75Variant("TMP75", 12, TWELVE_BITS, 0.3),  # SBOS288M, section 6.5
    "tmp175": Lm75Variant("TMP175", 12, TWELVE_BITS, 0.3),  # SBOS288M, section 6.5
    "tmp105": Lm75Variant("TMP105", 12, TWELVE_BITS, 0.32),  # SBOS648, "Electrical Characteristics"
    "tmp275": Lm75Variant("TMP275", 12, TWELVE_BITS, 0.3),  # SBOS363, "Electrical Characteristics"
    "ds75": Lm75Variant("DS75", 12, TWELVE_BITS, 1.2),  # Maxim DS75, "DC Electrical Characteristics": 12 bits
    "tcn75a": Lm75Variant("TCN75A", 12, TWELVE_BITS, 0.24),  # Microchip DS21935, "Temperature to Bits"
}


def celsius(raw: int, bits: int) -> float:
    """Convert a temperature register, whose upper `bits` are used, to degrees Celsius; the last bit of 9 is 0.5 °C."""
    count = raw >> (16 - bits)
    return (count - (1 << bits) if count >> (bits - 1) else count) / (1 << (bits - 8))


class Lm75(Chip):
    """An LM75 or a variant. It has no identity register, and a plain LM75 does not show a loss of power.

    It reads 0 °C until its first conversion ends, after at most 0.3 s.
    """

    def __init__(self, registers: Registers, variant: Lm75Variant) -> None:
        super().__init__(registers)
        self.variant = variant
        self.title = variant.title

    async def identify(self) -> None:
        """Check the bits that are always 0 in an LM75; variants may use all bits, so nothing is checked for them."""
        value = await self.registers.read_int(CONFIGURATION)
        if value & ~0x7F and self.variant.settings == 0:
            raise self.wrong_chip(f"its configuration reads 0x{value:02x}")

    async def configure(self) -> None:
        """Start continuous conversion with the best resolution; return after the first conversion."""
        await self.registers.write_int(CONFIGURATION, self.variant.settings)
        value = await self.registers.read_int(CONFIGURATION)
        if (value ^ self.variant.settings) & ~COMMAND & 0xFF:
            raise self.not_stored("the configuration", self.variant.settings, value, 1)
        await trio.sleep(self.variant.conversion)

    async def configured(self) -> bool:
        """Return whether the resolution is still set; after power-up, variants with 12 bits have 9."""
        value = await self.registers.read_int(CONFIGURATION)
        return (value ^ self.variant.settings) & ~COMMAND & 0xFF == 0

    async def temperature(self) -> float:
        """Return degrees Celsius, -55 to 125, in steps of 0.5 (9 bits) to 0.0625 (12 bits)."""
        return celsius(await self.registers.read_int(TEMPERATURE, 2), self.variant.bits)
