"""Sensor `serial_line`: readings are the last line that arrived on a serial port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import trio

from catalogue.devices.serial_line import SerialLineConfig
from hal.lines import LineBuffer
from runtime.builtin.devices.attributes import opened
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Context, Extra, Started
from schema.errors import ErrorKind, MachineError


class SerialLine(Sensor):
    """Unhealthy while the port is not there; the machine tries again when a device appears.

    What is reported is a whole line of the present connection: neither one that an unplugging cut, nor its other half.
    """

    Config: ClassVar[type[Attributes]] = SerialLineConfig
    attributes: SerialLineConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._parser = self.attributes.line_parser()
        self._lines = LineBuffer(cut=self.attributes.skip_first)
        self._count = 0
        self._last: bytes | None = None
        self._arrived = 0.0

    async def run(self, *, task_status: Started) -> None:
        """Ready when the port is open; fails with HalError (gone) when the device vanishes."""
        config = self.attributes
        async with opened(config, self) as port:
            task_status.started()
            while True:
                if lines := self._lines.feed(await port.receive_some()):
                    self._count += len(lines)
                    self._last = lines[-1]
                    self._arrived = trio.current_time()

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """The last line's readings and `age_s`, seconds since it was complete. UNAVAILABLE if there is none (yet)."""
        await trio.lowlevel.checkpoint()
        config = self.attributes
        if self._last is None:
            raise MachineError(
                f"{self.name}: no complete line has arrived on {config.port()}",
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
        return {**self._parser.parse(self._last.decode(errors="replace")), "age_s": round(age, 3)}

    async def get_status(self) -> Mapping[str, Any]:
        """How many lines have arrived, and how many were too long."""
        await trio.lowlevel.checkpoint()
        return {"lines": self._count, "dropped_lines": self._lines.dropped}
