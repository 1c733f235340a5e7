"""Attributes of the simulated board. Pure."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from schema import Attributes

# The range of each simulated quantity on an analog channel: value at count 0, value at the largest count.
_SPANS: Final = {
    "temperature_c": (-40.0, 85.0),
    "light_lux": (0.0, 1000.0),
    "supply_v": (0.0, 16.0),
    "supply_a": (0.0, 20.0),
    "supply_w": (0.0, 200.0),
}


class Analog(msgspec.Struct, kw_only=True, frozen=True):
    """An analog input."""

    name: str  # name of the analog reader
    pin: str = ""  # pin of the input; its mean level is the reading unless a quantity is configured
    channel: int | str = ""  # another name of pin, as a channel of a converter
    quantity: str = ""  # simulated quantity: temperature_c, light_lux, supply_v, supply_a or supply_w
    spi_bus: str = ""  # accepted but ignored
    chip_select: str = ""  # accepted but ignored
    average_over_ms: int = 0  # accepted but ignored
    samples_per_sec: int = 0  # accepted but ignored

    def __post_init__(self) -> None:
        if self.quantity and self.quantity not in _SPANS:
            raise ValueError(f"quantity {self.quantity!r} is not one of {', '.join(_SPANS)}")


class Interrupt(msgspec.Struct, kw_only=True, frozen=True):
    """A digital interrupt."""

    name: str  # name of the digital interrupt
    pin: str  # the pin whose edges it counts


class FakeBoardConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated board. Any string is a valid pin name."""

    analogs: tuple[Analog, ...] = ()  # analog inputs, 10 bits from 0 to 3.3 V
    digital_interrupts: tuple[Interrupt, ...] = ()  # pins whose edges are counted and streamed
    wires: tuple[tuple[str, str], ...] = ()  # pairs of connected pins; "other-board:pin" is a pin of another board
    fail_new: bool = False  # fail to start, to test how a machine copes with a failing board
    default_pwm_frequency_hz: Annotated[int, msgspec.Meta(gt=0)] = 800  # Hz; default of pins
