"""Attributes of `board`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import msgspec

from models.chips.ads1115.datasheet import GAINS, INPUTS
from models.chips.ads1115.datasheet import MODELS as ADS
from models.chips.mcp3008.datasheet import MODELS as MCP
from schema import Attributes, Bias

AnalogChip = Literal["mcp3004", "mcp3008", "mcp3204", "mcp3208", "ads1115", "ads1015"]


class Analog(msgspec.Struct, kw_only=True, frozen=True):
    """An analog input: a channel of a converter on SPI, or on I2C if `i2c_bus` is given."""

    name: str  # name of the analog reader
    channel: int | str = ""  # channel of the converter, from 0; on I2C also a pair, such as "0-1"
    pin: str = ""  # the same as channel
    chip: AnalogChip | Literal[""] = ""  # the converter; default: mcp3008 on SPI, ads1115 on I2C
    spi_bus: str | int = "0"  # number or path of the SPI bus
    chip_select: str | int = "0"  # number of the chip select
    i2c_bus: str | int = ""  # number, path or adapter name of the I2C bus
    i2c_address: int = 0x48  # 7-bit address on the I2C bus
    reference_v: Annotated[float, msgspec.Meta(gt=0)] = 3.3  # volts at full scale of a converter on SPI
    full_scale_v: float = 4.096  # range of a converter on I2C in volts: 6.144, 4.096, 2.048, 1.024, 0.512, 0.256
    average_over_ms: Annotated[int, msgspec.Meta(ge=0)] = 0  # averaging time in ms; 0: none
    samples_per_sec: Annotated[int, msgspec.Meta(gt=0, le=1000)] = 20  # conversions per second while averaging

    @property
    def converter(self) -> AnalogChip:
        """The type of the converter chip, with the default applied."""
        return self.chip or ("ads1115" if self.on_i2c else "mcp3008")

    @property
    def on_i2c(self) -> bool:
        """Whether the converter is on I2C."""
        return self.i2c_bus != ""

    @property
    def input(self) -> str:
        """The channel, as the converter names it."""
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
            raise ValueError(f"analog {self.name!r}: channel {self.input!r} is not one of {', '.join(INPUTS)}")
        if self.on_i2c and self.full_scale_v not in GAINS:
            volts = ", ".join(f"{value:g}" for value in GAINS)
            raise ValueError(f"analog {self.name!r}: full_scale_v {self.full_scale_v:g} is not one of {volts}")
        if not str(self.chip_select).isdigit():
            raise ValueError(f"analog {self.name!r}: chip_select {self.chip_select!r} is not a number")


class Interrupt(msgspec.Struct, kw_only=True, frozen=True):
    """A pin whose edges are counted and streamed while the board runs."""

    name: str  # name of the digital interrupt
    pin: str  # the pin
    bias: Bias = "as_is"  # pull resistor: up, down, none or as_is
    debounce_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # milliseconds that a level must last to count; 0: any
    active_low: bool = False  # count falling edges, and report a low level as high


class LinuxBoardConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the board. A pin is a number on the header, a name, or `<chip>:<offset>`."""

    board: str = ""  # board definition, such as raspberry-pi-4; detected if empty
    analogs: tuple[Analog, ...] = ()  # analog inputs on converters
    digital_interrupts: tuple[Interrupt, ...] = ()  # pins whose edges are counted and streamed
    pins: Mapping[str, str] = {}  # additional pin names: {"pump": "gpiochip0:17"} or {"pump": "11"}
    safe_high: tuple[str, ...] = ()  # outputs whose safe level is high: until they are set, and at stop
    outputs: tuple[str, ...] = ()  # pins driven to their safe level when the board starts, like those in safe_high
    default_pwm_frequency_hz: Annotated[int, msgspec.Meta(gt=0)] = 800  # Hz, of pins without their own

    def __post_init__(self) -> None:
        for kind, names in (
            ("analog", [entry.name for entry in self.analogs]),
            ("digital interrupt", [entry.name for entry in self.digital_interrupts]),
        ):
            if duplicate := _duplicate(names):
                raise ValueError(f"{kind} {duplicate!r} is defined twice: give each entry its own name")


def _duplicate(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
