"""Attributes that `runtime.builtin.board.attributes` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import msgspec

from hal.chips.ads1115 import GAINS, INPUTS
from hal.chips.ads1115 import MODELS as ADS
from hal.chips.mcp3008 import MODELS as MCP
from hal.ports.digital import Bias
from schema.attributes import Attributes

AnalogChip = Literal["mcp3004", "mcp3008", "mcp3204", "mcp3208", "ads1115", "ads1015"]


class Analog(msgspec.Struct, kw_only=True, frozen=True):
    """An analog input: a channel of a converter on SPI, or of one on I2C if `i2c_bus` is given."""

    name: str  # what read_analog_reader calls it
    channel: int | str = ""  # of the converter, from 0; on I2C also a pair, such as "0-1"
    pin: str = ""  # the same as channel
    chip: AnalogChip | Literal[""] = ""  # the converter; mcp3008 on SPI and ads1115 on I2C if not given
    spi_bus: str | int = "0"  # number of the SPI bus, or path
    chip_select: str | int = "0"  # number of the chip select
    i2c_bus: str | int = ""  # number, path or adapter name of the I2C bus
    i2c_address: int = 0x48  # 7-bit address on the I2C bus
    reference_v: Annotated[float, msgspec.Meta(gt=0)] = 3.3  # volts at full scale of a converter on SPI
    full_scale_v: float = 4.096  # volts of one on I2C: 6.144, 4.096, 2.048, 1.024, 0.512 or 0.256
    average_over_ms: Annotated[int, msgspec.Meta(ge=0)] = 0  # milliseconds over which readings are averaged; 0 for none
    samples_per_sec: Annotated[int, msgspec.Meta(gt=0, le=1000)] = 20  # readings per second while averaging

    @property
    def converter(self) -> AnalogChip:
        """Which chip it is."""
        return self.chip or ("ads1115" if self.on_i2c else "mcp3008")

    @property
    def on_i2c(self) -> bool:
        """Whether the converter is on I2C."""
        return self.i2c_bus != ""

    @property
    def input(self) -> str:
        """The channel, in words of the converter."""
        return self.pin or str(self.channel)

    def __post_init__(self) -> None:
        if (self.pin == "") == (self.channel == ""):
            raise ValueError(f"analog {self.name!r} needs either `channel` or `pin`, the number of the input")
        if self.chip and self.on_i2c != (self.chip in ADS):
            bus = "I2C: give i2c_bus" if self.chip in ADS else "SPI: leave i2c_bus out"
            raise ValueError(f"analog {self.name!r}: the {self.chip} is on {bus}")
        if not self.on_i2c and not (self.input.isdigit() and int(self.input) < MCP[self.converter].channels):
            last = MCP[self.converter].channels - 1
            raise ValueError(f"analog {self.name!r}: channel {self.input!r} is not 0 to {last}")
        if self.on_i2c and self.input not in INPUTS:
            raise ValueError(f"analog {self.name!r}: channel {self.input!r} is none of {', '.join(INPUTS)}")
        if self.on_i2c and self.full_scale_v not in GAINS:
            volts = ", ".join(f"{value:g}" for value in GAINS)
            raise ValueError(f"analog {self.name!r}: full_scale_v {self.full_scale_v:g} is none of {volts}")
        if not str(self.chip_select).isdigit():
            raise ValueError(f"analog {self.name!r}: chip_select {self.chip_select!r} is not a number")


class Interrupt(msgspec.Struct, kw_only=True, frozen=True):
    """A pin whose edges are counted and streamed from the board's start on."""

    name: str  # what get_digital_interrupt_value and stream_ticks call it
    pin: str  # the pin
    bias: Bias = "as_is"  # resistor: up, down, none, or as_is
    debounce_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # milliseconds that a level must last to count; 0 for none
    active_low: bool = False  # count falling edges, and call a low level high


class LinuxBoardConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the board. Pins are called by their number on the header, by a name, or `<chip>:<offset>`."""

    board: str = ""  # name of the board's definition, such as raspberry-pi-4; found from the device tree if not given
    analogs: tuple[Analog, ...] = ()  # analog inputs on converters
    digital_interrupts: tuple[Interrupt, ...] = ()  # pins whose edges are counted and streamed
    pins: Mapping[str, str] = {}  # more names of pins: {"pump": "gpiochip0:17"} or {"pump": "11"}
    safe_high: tuple[
        str, ...
    ] = ()  # outputs that are high before they are set and when the board stops; others are low
    outputs: tuple[str, ...] = ()  # pins at their safe level from the board's start on, as is every one of safe_high
    default_pwm_frequency_hz: Annotated[int, msgspec.Meta(gt=0)] = 800  # Hz, of pins that were not told

    def __post_init__(self) -> None:
        for what, names in (
            ("analog", [entry.name for entry in self.analogs]),
            ("digital interrupt", [entry.name for entry in self.digital_interrupts]),
        ):
            if twice := _twice(names):
                raise ValueError(f"two entries are {what} {twice!r}: give each a name of its own")


def _twice(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
