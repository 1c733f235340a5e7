"""The PWM frequencies of a PCA9685. Pure."""

from __future__ import annotations

from typing import Final

COUNTS: Final = 4096  # steps of one period, section 7.3.3
OSCILLATOR: Final = 25e6  # Hz, section 7.3.5


FIRST_PRE_SCALE: Final = 3  # "the hardware forces a minimum value", section 7.3.5
LAST_PRE_SCALE: Final = 255


def frequency_of(pre_scale: int) -> float:
    """Return the frequency of all outputs in Hz; section 7.3.5, equation 1."""
    return OSCILLATOR / (COUNTS * (pre_scale + 1))


LOWEST: Final = frequency_of(LAST_PRE_SCALE)  # 23.8 Hz
HIGHEST: Final = frequency_of(FIRST_PRE_SCALE)  # 1526 Hz


def pre_scale_of(frequency: float) -> int:
    """Return the register value nearest to a frequency in Hz; ValueError outside the range of the chip."""
    pre_scale = round(OSCILLATOR / (COUNTS * frequency)) - 1 if frequency > 0 else 0
    if not FIRST_PRE_SCALE <= pre_scale <= LAST_PRE_SCALE:
        raise ValueError(f"a PCA9685 supports {LOWEST:.0f} to {HIGHEST:.0f} Hz, not {frequency:g} Hz")
    return pre_scale
