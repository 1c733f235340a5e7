"""The definition of a board: its pins and buses. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hal.ports.digital import Line
from hal.ports.pwm import PwmChannel
from schema import ErrorKind, MachineError

_NUMBERED: Final = re.compile(r"(?:physical|header|board|pin)[\s:_-]*(?=\d)", re.IGNORECASE)
_PLACE: Final = re.compile(r"[0-9]{1,4}")
_LINE: Final = re.compile(r"(?P<chip>.+):(?P<offset>[0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class BoardPin:
    """A pin: its names, beginning with the number on the header, and its line; None for power and ground."""

    names: tuple[str, ...]
    line: Line | None = None
    pwm: PwmChannel | None = None
    note: str = ""  # other uses: "I2C1 SDA", "3.3 V", "ground"


@dataclass(frozen=True, slots=True)
class BoardDefinition:
    """A board. `i2c`, `spi` and `serial` map the names of its buses, as printed on the board, to their paths."""

    name: str  # raspberry-pi-4
    title: str  # Raspberry Pi 4 Model B
    compatible: tuple[str, ...] = ()  # of the device tree
    pins: tuple[BoardPin, ...] = ()
    i2c: Mapping[str, str] = field(default_factory=dict)
    spi: Mapping[str, str] = field(default_factory=dict)
    serial: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()  # sources of the data: kernel files, vendor tables
    unverified: tuple[str, ...] = ()  # facts that were not verified with a primary source
    _by_name: Mapping[str, BoardPin] = field(init=False, repr=False, compare=False)  # in lower case

    def __post_init__(self) -> None:
        # In reverse order, so that a name of several pins is that of the first.
        names = {alias.lower(): pin for pin in reversed(self.pins) for alias in pin.names}
        object.__setattr__(self, "_by_name", names)

    def pin(self, name: str) -> BoardPin:
        """Return the pin with that name, ignoring case.

        `pin 11` and `physical 11` mean number 11 of the header; `<chip>:<offset>` means any line of any chip, whether
        it is on the header or not. Raises MachineError: NOT_FOUND with similar names, INVALID for power and ground.
        """
        pin_name = name
        pin = self._by_name.get(name)  # names of most calls are in lower case, and the rest of this takes longer
        if pin is None:
            pin_name = _NUMBERED.sub("", name.strip(), count=1).lower()
            pin = self._by_name.get(pin_name)
        if pin is not None and pin.line is not None:
            return pin
        if pin is not None:
            raise MachineError(
                f"pin {name} of {self.title} is {pin.note or 'not a line'}",
                kind=ErrorKind.INVALID,
                remedy=f"use {self._similar(pin_name)}",
            )
        if free := _LINE.fullmatch(name.strip()):
            return BoardPin((name.strip(),), Line(free["chip"], int(free["offset"])))
        similar = self._similar(pin_name)
        remedy = f"did you mean {similar}?" if similar else "name a line as <chip>:<offset>, such as gpiochip0:4"
        raise MachineError(f"{self.title} has no pin {name!r}", kind=ErrorKind.NOT_FOUND, remedy=remedy)

    def _similar(self, name: str) -> str:
        usable = [pin for pin in self.pins if pin.line is not None]
        if _PLACE.fullmatch(name):
            number = int(name)
            numbered = [pin for pin in usable if pin.names[0].isdigit()]
            near = sorted(numbered, key=lambda pin: abs(int(pin.names[0]) - number))[:3]
            if near:
                return " or ".join(" = ".join(pin.names) for pin in near)
        names = {alias.lower(): alias for pin in usable for alias in pin.names}
        return " or ".join(names[match] for match in difflib.get_close_matches(name, names, 3, 0.0))
