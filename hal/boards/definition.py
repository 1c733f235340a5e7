"""What is known about a board: its pins and buses. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hal.ports.digital import Line
from hal.ports.pwm import PwmChannel
from schema.errors import ErrorKind, MachineError

_NUMBERED: Final = re.compile(r"(?:physical|header|board|pin)[\s:_-]*(?=\d)", re.IGNORECASE)
_PLACE: Final = re.compile(r"[0-9]{1,4}")
_LINE: Final = re.compile(r"(?P<chip>.+):(?P<offset>[0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class BoardPin:
    """One pin: its names, the number on the header first, and what is behind it; no line means power or ground."""

    names: tuple[str, ...]
    line: Line | None = None
    pwm: PwmChannel | None = None
    note: str = ""  # other uses: "I2C1 SDA", "3.3 V", "ground"


@dataclass(frozen=True, slots=True)
class BoardDefinition:
    """One board. `i2c`, `spi` and `serial` name its buses as printed on it and give their paths."""

    name: str  # raspberry-pi-4
    title: str  # Raspberry Pi 4 Model B
    compatible: tuple[str, ...] = ()  # of the device tree
    pins: tuple[BoardPin, ...] = ()
    i2c: Mapping[str, str] = field(default_factory=dict)
    spi: Mapping[str, str] = field(default_factory=dict)
    serial: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()  # where the facts are from: files of the kernel, tables of the vendor
    unverified: tuple[str, ...] = ()  # what is known from second hand only, in words

    def pin(self, name: str) -> BoardPin:
        """The pin with that name (case does not matter), which has a line.

        `pin 11` and `physical 11` are the number 11 of the header; `<chip>:<offset>` is any line of any chip, on the
        header or not. MachineError otherwise: NOT_FOUND with the nearest right ones, INVALID for power and ground.
        """
        wanted = _NUMBERED.sub("", name.strip(), count=1).lower()
        for pin in self.pins:
            if wanted in (known.lower() for known in pin.names):
                if pin.line is None:
                    raise MachineError(
                        f"pin {name} of {self.title} is {pin.note or 'not a line'}",
                        kind=ErrorKind.INVALID,
                        remedy=f"use {self._near(wanted)}",
                    )
                return pin
        if free := _LINE.fullmatch(name.strip()):
            return BoardPin((name.strip(),), Line(free["chip"], int(free["offset"])))
        near = self._near(wanted)
        remedy = f"did you mean {near}?" if near else "name a line as <chip>:<offset>, such as gpiochip0:4"
        raise MachineError(f"{self.title} has no pin {name!r}", kind=ErrorKind.NOT_FOUND, remedy=remedy)

    def _near(self, name: str) -> str:
        usable = [pin for pin in self.pins if pin.line is not None]
        if _PLACE.fullmatch(name):
            number = int(name)
            numbered = [pin for pin in usable if pin.names[0].isdigit()]
            near = sorted(numbered, key=lambda pin: abs(int(pin.names[0]) - number))[:3]
            if near:
                return " or ".join(" = ".join(pin.names) for pin in near)
        names = {known.lower(): known for pin in usable for known in pin.names}
        return " or ".join(names[match] for match in difflib.get_close_matches(name, names, 3, 0.0))
