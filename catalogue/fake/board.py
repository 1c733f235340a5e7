"""Attributes that `runtime.builtin.fake.board` reads."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from hal.sim.gpio import DEFAULT_FREQUENCY
from schema.attributes import Attributes

# The span of each quantity of the bench on an analog channel: value at count 0, value at the last count.
_SPANS: Final = {
    "temperature_c": (-40.0, 85.0),
    "light_lux": (0.0, 1000.0),
    "supply_v": (0.0, 16.0),
    "supply_a": (0.0, 20.0),
    "supply_w": (0.0, 200.0),
}


class Analog(msgspec.Struct, kw_only=True, frozen=True):
    """An analog input."""

    name: str  # what read_analog_reader calls it
    pin: str = ""  # the pin it is on; its mean level is the reading unless a quantity is given
    channel: int | str = ""  # the same, as a converter's channel
    quantity: str = ""  # a quantity of the bench: temperature_c, light_lux, supply_v, supply_a or supply_w
    spi_bus: str = ""  # accepted, without meaning here
    chip_select: str = ""  # accepted, without meaning here
    average_over_ms: int = 0  # accepted, without meaning here
    samples_per_sec: int = 0  # accepted, without meaning here

    def __post_init__(self) -> None:
        if self.quantity and self.quantity not in _SPANS:
            raise ValueError(f"quantity {self.quantity!r} is not one of {', '.join(_SPANS)}")


class Interrupt(msgspec.Struct, kw_only=True, frozen=True):
    """A digital interrupt."""

    name: str  # what get_digital_interrupt_value and stream_ticks call it
    pin: str  # the pin it listens to


class FakeBoardConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated board. Any string names a pin."""

    analogs: tuple[Analog, ...] = ()  # analog inputs, 10 bits from 0 to 3.3 V
    digital_interrupts: tuple[Interrupt, ...] = ()  # pins whose edges are counted and streamed
    wires: tuple[tuple[str, str], ...] = ()  # pairs of connected pins; "other-board:pin" is a pin of another board
    fail_new: bool = False  # refuse to start, to see what a failing board does to a machine
    default_pwm_frequency_hz: Annotated[int, msgspec.Meta(gt=0)] = int(DEFAULT_FREQUENCY)  # of pins that were not told
