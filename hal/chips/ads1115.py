"""ADS1115 (16 bits) and ADS1015 (12 bits): analog-to-digital converters on I2C.

Texas Instruments SBAS444D (ADS111x, January 2018) and SBAS473E (ADS101x, January 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import trio

from hal.chips.chip import Chip
from hal.errors import Fault, HalError
from hal.registers import Registers

CHANNELS: Final = 4

CONVERSION: Final = 0x00  # SBAS444D, table 6
CONFIG: Final = 0x01

START: Final = 0x8000  # OS: written starts a conversion, read says that none is under way; table 8
SINGLE_SHOT: Final = 0x0100
NO_COMPARATOR: Final = 0x0003

# Bits 14 to 12, table 8: which inputs are measured. A number alone is against ground.
INPUTS: Final = {"0-1": 0, "0-3": 1, "1-3": 2, "2-3": 3, "0": 4, "1": 5, "2": 6, "3": 7}

# Volts at full scale and bits 11 to 9, table 8 and table 3. No input may be above the supply whatever is chosen.
GAINS: Final = {6.144: 0, 4.096: 1, 2.048: 2, 1.024: 3, 0.512: 4, 0.256: 5}

TOLERANCE: Final = 1.1  # the data rate may be 10 % low (section 7.5, "data rate variation")
WAKE: Final = 50e-6  # s from power-down to the start of a conversion (section 9.4.2.1: 25 to 30 µs)
LOOKS: Final = 8  # how often to look whether a conversion has ended before it counts as hung


@dataclass(frozen=True, slots=True)
class Model:
    """One chip: bits of a conversion, left-justified in 16, and samples per second with bits 7 to 5."""

    title: str
    bits: int
    rates: Mapping[int, int]


MODELS: Final = {
    "ads1115": Model("ADS1115", 16, {8: 0, 16: 1, 32: 2, 64: 3, 128: 4, 250: 5, 475: 6, 860: 7}),  # SBAS444D, table 8
    "ads1015": Model("ADS1015", 12, {128: 0, 250: 1, 490: 2, 920: 3, 1600: 4, 2400: 5, 3300: 6}),  # SBAS473E, table 8
}


def count_of(raw: int, bits: int) -> int:
    """A conversion register as a signed count of a chip with `bits` bits."""
    count = raw >> (16 - bits)
    return count - (1 << bits) if count >> (bits - 1) else count


def step(full_scale: float, bits: int) -> float:
    """Volts of one count: SBAS444D, table 3; SBAS473E, table 3."""
    return full_scale / (1 << (bits - 1))


def volts(count: int, full_scale: float, bits: int) -> float:
    """Volts of a signed count."""
    return count * step(full_scale, bits)


def config_word(inputs: str, full_scale: float, rate: int, model: Model) -> int:
    """The configuration that starts one conversion. ValueError names the values that would be right."""
    if inputs not in INPUTS:
        raise ValueError(f"inputs {inputs!r} are none of {', '.join(INPUTS)}")
    if full_scale not in GAINS:
        raise ValueError(f"a full scale of {full_scale:g} V is none of {', '.join(f'{v:g}' for v in GAINS)}")
    if rate not in model.rates:
        raise ValueError(f"{rate} samples/s are none of {', '.join(map(str, model.rates))} that the {model.title} has")
    return START | INPUTS[inputs] << 12 | GAINS[full_scale] << 9 | SINGLE_SHOT | model.rates[rate] << 5 | NO_COMPARATOR


async def power_down(registers: Registers) -> None:
    """End continuous conversions that another program may have begun; without this they would hide ours."""
    await registers.write_int(CONFIG, SINGLE_SHOT | NO_COMPARATOR, 2)


async def read_channel(registers: Registers, inputs: int | str, full_scale: float, rate: int, model: Model) -> int:
    """One conversion of a channel (0 to 3, against ground) or a pair ("0-1"): a signed count.

    Nothing is kept between calls, so a chip that was without power needs nothing; but two calls must not overlap, hold
    a lock, and the chip must be in power-down, as after power-up and `power_down`. Takes one conversion time, 1/rate.
    ValueError for what the chip does not have; HalError of the bus, and (bus) if what answers is no such chip,
    (timeout) if it never finishes.
    """
    word = config_word(str(inputs), full_scale, rate, model)
    await registers.write_int(CONFIG, word, 2)
    await trio.sleep(WAKE + TOLERANCE / rate)
    for _ in range(LOOKS):
        reads = await registers.read_int(CONFIG, 2)
        if (reads ^ word) & ~START & 0xFFFF:
            raise HalError(
                f"{registers} is no {model.title}, or was without power: its configuration reads 0x{reads:04x} "
                f"after 0x{word:04x} was written",
                Fault.BUS,
                remedy="check wiring and power, and that this chip is at the address",
            )
        if reads & START:
            return count_of(await registers.read_int(CONVERSION, 2), model.bits)
    raise HalError(f"{registers}: the {model.title} does not finish a conversion", Fault.TIMEOUT)


class Ads1115(Chip):
    """The converter as a chip that is known at its start; it has no identity register."""

    def __init__(self, registers: Registers, model: Model, full_scale: float, rate: int) -> None:
        super().__init__(registers)
        self.model = model
        self.title = model.title
        self.full_scale = full_scale
        self.rate = rate

    async def identify(self) -> None:
        """Neither all zeros nor all ones; whether it converts is for `configure` to find out."""
        value = await self.registers.read_int(CONFIG, 2)
        if value in (0x0000, 0xFFFF):
            raise self.stranger(f"its configuration reads 0x{value:04x}")

    async def configure(self) -> None:
        """Power-down, whatever another program left, then one conversion to see that it works."""
        await power_down(self.registers)
        await self.read_channel(0)

    async def read_channel(self, inputs: int | str) -> int:
        """A signed count, as `read_channel` says."""
        return await read_channel(self.registers, inputs, self.full_scale, self.rate, self.model)

    async def volts(self, inputs: int | str) -> float:
        """Volts of a channel or pair."""
        return volts(await self.read_channel(inputs), self.full_scale, self.model.bits)
