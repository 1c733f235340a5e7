"""Tables of the data sheets of ADS1115 and ADS1015. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CHANNELS: Final = 4
START: Final = 0x8000  # OS: writing 1 starts a conversion, reading 1 means that none is in progress; table 8


SINGLE_SHOT: Final = 0x0100
NO_COMPARATOR: Final = 0x0003


# Bits 14 to 12, table 8: the inputs to measure. A single number is measured against ground.
INPUTS: Final = {"0-1": 0, "0-3": 1, "1-3": 2, "2-3": 3, "0": 4, "1": 5, "2": 6, "3": 7}
# Volts at full scale and bits 11 to 9, table 8 and table 3. With any setting, inputs must not exceed the supply
# voltage.
GAINS: Final = {6.144: 0, 4.096: 1, 2.048: 2, 1.024: 3, 0.512: 4, 0.256: 5}


@dataclass(frozen=True, slots=True)
class AdsChip:
    """A chip: bits of a conversion, left-justified in 16, and bits 7 to 5 for each rate in samples per second."""

    title: str
    bits: int
    rates: Mapping[int, int]


MODELS: Final = {
    "ads1115": AdsChip("ADS1115", 16, {8: 0, 16: 1, 32: 2, 64: 3, 128: 4, 250: 5, 475: 6, 860: 7}),  # SBAS444D, table 8
    "ads1015": AdsChip("ADS1015", 12, {128: 0, 250: 1, 490: 2, 920: 3, 1600: 4, 2400: 5, 3300: 6}),  # SBAS473E, table 8
}


def config_word(inputs: str, full_scale: float, rate: int, model: AdsChip) -> int:
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
