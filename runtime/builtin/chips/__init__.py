"""Models of chips on I2C and SPI buses."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:sensor", "rdk:builtin:lm75"): "runtime.builtin.chips.lm75:Lm75",
    ("rdk:component:sensor", "rdk:builtin:tmp102"): "runtime.builtin.chips.tmp102:Tmp102",
}
"""`(API, model)` -> `module:class`."""
