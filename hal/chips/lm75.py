"""LM75 and the temperature sensors that kept its registers.

LM75: Texas Instruments (National) SNOS808P, "LM75B, LM75C Digital Temperature Sensor". The others differ in the bits of
a conversion and how long it takes: VARIANTS. The temperature is always left-justified in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import trio

from hal.chips.chip import Chip
from hal.registers import Registers

TEMPERATURE: Final = 0x00  # SNOS808P, table "Pointer Register"
CONFIGURATION: Final = 0x01

TWELVE_BITS: Final = 0x60  # R1 R0 of the configuration; 0 in an LM75, where these bits are reserved
COMMAND: Final = 0x80  # one-shot of the variants: not a setting


@dataclass(frozen=True, slots=True)
class Variant:
    """Bits of a conversion, the configuration that gives them, and the longest conversion in seconds."""

    title: str
    bits: int
    settings: int
    conversion: float


VARIANTS: Final = {
    "lm75": Variant("LM75", 9, 0x00, 0.3),  # SNOS808P, "Temperature-to-Digital Converter Characteristics"
    "lm75b": Variant("LM75B", 11, 0x00, 0.1),  # NXP LM75B revision 6.1, table 4: period of 100 ms
    "tmp75": Variant("TMP75", 12, TWELVE_BITS, 0.3),  # SBOS288M, section 6.5
    "tmp175": Variant("TMP175", 12, TWELVE_BITS, 0.3),  # SBOS288M, section 6.5
    "tmp105": Variant("TMP105", 12, TWELVE_BITS, 0.32),  # SBOS648, "Electrical Characteristics"
    "tmp275": Variant("TMP275", 12, TWELVE_BITS, 0.3),  # SBOS363, "Electrical Characteristics"
    "ds75": Variant("DS75", 12, TWELVE_BITS, 1.2),  # Maxim DS75, "DC Electrical Characteristics": 12 bits
    "tcn75a": Variant("TCN75A", 12, TWELVE_BITS, 0.24),  # Microchip DS21935, "Temperature to Bits"
}


def celsius(raw: int, bits: int) -> float:
    """Degrees Celsius of a temperature register of which the upper `bits` count; the last of 9 is half a degree."""
    count = raw >> (16 - bits)
    return (count - (1 << bits) if count >> (bits - 1) else count) / (1 << (bits - 8))


class Lm75(Chip):
    """None of them has an identity register, and a plain LM75 does not show that it was without power.

    What it shows until its first conversion ends, 0.3 s at most, is 0 °C.
    """

    def __init__(self, registers: Registers, variant: Variant) -> None:
        super().__init__(registers)
        self.variant = variant
        self.title = variant.title

    async def identify(self) -> None:
        """Bits that an LM75 has at 0; nothing for its variants, whose bits may all be used."""
        value = await self.registers.read_int(CONFIGURATION)
        if value & ~0x7F and self.variant.settings == 0:
            raise self.stranger(f"its configuration reads 0x{value:02x}")

    async def configure(self) -> None:
        """Convert all the time, as finely as it can; returns after the first conversion with these settings."""
        await self.registers.write_int(CONFIGURATION, self.variant.settings)
        value = await self.registers.read_int(CONFIGURATION)
        if (value ^ self.variant.settings) & ~COMMAND & 0xFF:
            raise self.forgetful("the configuration", self.variant.settings, value, 1)
        await trio.sleep(self.variant.conversion)

    async def configured(self) -> bool:
        """Power-up leaves 9 bits, which the variants with 12 show."""
        value = await self.registers.read_int(CONFIGURATION)
        return (value ^ self.variant.settings) & ~COMMAND & 0xFF == 0

    async def temperature(self) -> float:
        """Degrees Celsius, -55 to 125, in steps of 0.5 (9 bits) to 0.0625 (12 bits)."""
        return celsius(await self.registers.read_int(TEMPERATURE, 2), self.variant.bits)
