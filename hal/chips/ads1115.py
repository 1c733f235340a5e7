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

START: Final = 0x8000  # OS: writing 1 starts a conversion, reading 1 means that none is in progress; table 8
SINGLE_SHOT: Final = 0x0100
NO_COMPARATOR: Final = 0x0003

# Bits 14 to 12, table 8: the inputs to measure. A single number is measured against ground.
INPUTS: Final = {"0-1": 0, "0-3": 1, "1-3": 2, "2-3": 3, "0": 4, "1": 5, "2": 6, "3": 7}

# Volts at full scale and bits 11 to 9, table 8 and table 3. With any setting, inputs must not exceed the supply
# voltage.
GAINS: Final = {6.144: 0, 4.096: 1, 2.048: 2, 1.024: 3, 0.512: 4, 0.256: 5}

TOLERANCE: Final = 1.1  # the data rate may be 10 % low (section 7.5, "data rate variation")
WAKE: Final = 50e-6  # s from power-down to the start of a conversion (section 9.4.2.1: 25 to 30 µs)
MAX_POLLS: Final = 8  # reads of the status until an unfinished conversion counts as hung


@dataclass(frozen=True, slots=True)
class Model:
    """A chip: bits of a conversion, left-justified in 16, and bits 7 to 5 for each rate in samples per second."""

    title: str
    bits: int
    rates: Mapping[int, int]


MODELS: Final = {
    "ads1115": Model("ADS1115", 16, {8: 0, 16: 1, 32: 2, 64: 3, 128: 4, 250: 5, 475: 6, 860: 7}),  # SBAS444D, table 8
    "ads1015": Model("ADS1015", 12, {128: 0, 250: 1, 490: 2, 920: 3, 1600: 4, 2400: 5, 3300: 6}),  # SBAS473E, table 8
}


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


def config_word(inputs: str, full_scale: float, rate: int, model: Model) -> int:
    """Return the configuration that starts one conversion. ValueError for values that the chip does not support."""
    if inputs not in INPUTS:
        raise ValueError(f"inputs {inputs!r} are not valid: expected one of {', '.join(INPUTS)}")
    if full_scale not in GAINS:
        volts = ", ".join(f"{gain:g}" for gain in GAINS)
        raise ValueError(f"a full scale of {full_scale:g} V is not valid: expected one of {volts}")
    if rate not in model.rates:
        rates = ", ".join(map(str, model.rates))
        raise ValueError(f"{rate} samples/s is not a rate of the {model.title}: expected one of {rates}")
    return START | INPUTS[inputs] << 12 | GAINS[full_scale] << 9 | SINGLE_SHOT | model.rates[rate] << 5 | NO_COMPARATOR


async def power_down(registers: Registers) -> None:
    """Stop continuous conversions that another program may have started; they would interfere with single ones."""
    await registers.write_int(CONFIG, SINGLE_SHOT | NO_COMPARATOR, 2)


async def read_channel(registers: Registers, inputs: int | str, full_scale: float, rate: int, model: Model) -> int:
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

    def __init__(self, registers: Registers, model: Model, full_scale: float, rate: int) -> None:
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
        """See the function `read_channel`."""
        return await read_channel(self.registers, inputs, self.full_scale, self.rate, self.model)

    async def volts(self, inputs: int | str) -> float:
        """Measure a channel or pair in volts."""
        return volts(await self.read_channel(inputs), self.full_scale, self.model.bits)
