"""Sensor `serial_line`: readings are the last line that arrived on a serial port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
import trio

from hal.linux.serial import open_serial
from hal.ports.serial import Parity, SerialSettings
from runtime.builtin.parsing import Format, Parser
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Context, Extra, Started
from schema.errors import ErrorKind, MachineError

LONGEST_LINE: Final = 65536  # bytes; a longer one is dropped and counted


class SerialLineConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the serial line sensor. Name the port by its stable path under /dev/serial/by-id."""

    path: str  # of the port
    baud: Annotated[int, msgspec.Meta(gt=0)] = 115200  # bits per second
    bits: Literal[5, 6, 7, 8] = 8  # data bits
    parity: Parity = "none"  # none, even or odd
    stop_bits: Literal[1, 2] = 1  # stop bits
    parser: Format = "json"  # json, csv, key_value, number, regex or text
    pattern: str = ""  # for regex: a regular expression with named groups
    columns: tuple[str, ...] = ()  # for csv: names of the columns
    separator: str = ","  # for csv
    max_age_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # an older line is an error; 0 accepts any

    def __post_init__(self) -> None:
        self.line_parser()

    def line_parser(self) -> Parser:
        """Of a line."""
        return Parser(format=self.parser, pattern=self.pattern, columns=self.columns, separator=self.separator)


class Lines:
    """Splits bytes into lines and keeps the last complete one; costs next to nothing for those in between."""

    def __init__(self) -> None:
        self.last: bytes | None = None
        self.count = 0
        self.dropped = 0
        self._rest = bytearray()
        self._dropping = False

    def feed(self, data: bytes | bytearray) -> bool:
        """Take what arrived; True if it completed a line. Lines end with LF; CR before it and empty lines vanish."""
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return False
        head = data[:end]
        if self._dropping:  # the tail of a line that was too long
            head = head.partition(b"\n")[2]
            self._dropping = False
        lines = [line for line in (bytes(self._rest) + head).split(b"\n") if line.strip()]
        self._rest.clear()
        self._keep(data[end + 1 :])
        if not lines:
            return False
        self.count += len(lines)
        self.last = lines[-1].rstrip(b"\r")
        return True

    def _keep(self, data: bytes | bytearray) -> None:
        if self._dropping:
            return
        self._rest += data
        if len(self._rest) > LONGEST_LINE:
            self._rest.clear()
            self._dropping = True
            self.dropped += 1


class SerialLine(Sensor):
    """Unhealthy while the port is not there; the machine tries again until it is."""

    Config: ClassVar[type[Attributes]] = SerialLineConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._parser: Parser = self.attributes.line_parser()
        self._lines = Lines()
        self._arrived = 0.0

    async def run(self, *, task_status: Started) -> None:
        """Ready when the port is open; fails with HalError (gone) when the device vanishes."""
        config: SerialLineConfig = self.attributes
        settings = SerialSettings(config.baud, config.bits, config.parity, config.stop_bits)
        async with open_serial(config.path, settings) as port:
            task_status.started()
            while True:
                if self._lines.feed(await port.receive_some()):
                    self._arrived = trio.current_time()

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """The last line's readings and `age_s`, seconds since it was complete. UNAVAILABLE if there is none (yet)."""
        await trio.lowlevel.checkpoint()
        config: SerialLineConfig = self.attributes
        line = self._lines.last
        if line is None:
            raise MachineError(
                f"{self.name}: no complete line has arrived on {config.path}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check that the device sends, and the baud rate",
            )
        age = trio.current_time() - self._arrived
        if config.max_age_s and age > config.max_age_s:
            raise MachineError(
                f"{self.name}: the last line is {age:.1f} s old",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check that the device still sends",
            )
        return {**self._parser.parse(line.decode(errors="replace")), "age_s": round(age, 3)}

    async def get_status(self) -> Mapping[str, Any]:
        """How many lines have arrived, and how many were too long."""
        await trio.lowlevel.checkpoint()
        return {"lines": self._lines.count, "dropped_lines": self._lines.dropped}
