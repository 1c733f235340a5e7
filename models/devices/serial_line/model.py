"""Sensor `serial_line`: readings from the last line received on a serial port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import trio

from engine import Attributes, Context, Extra, Sensor, Started, model
from hal import LineBuffer
from models.devices.common.opening import opened
from models.devices.serial_line.attributes import SerialLineConfig
from schema import ErrorKind, MachineError


@model("rdk:builtin:serial_line")
class SerialLine(Sensor):
    """Unhealthy while the port does not exist; the machine retries when a device appears.

    Only complete lines of the current connection are reported, never parts of a line that unplugging cut.
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
        """Run the driver; ready when the port is open. HalError (GONE) if the device disappears."""
        config = self.attributes
        async with opened(config, self) as port:
            task_status.started()
            while True:
                if lines := self._lines.feed(await port.receive_some()):
                    self._count += len(lines)
                    self._last = lines[-1]
                    self._arrived = trio.current_time()

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Return the readings of the last line and `age_s`, its age in seconds. UNAVAILABLE without a recent line."""
        await trio.lowlevel.checkpoint()
        config = self.attributes
        if self._last is None:
            raise MachineError(
                f"{self.name}: no complete line has arrived on {config.port()}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check that the device sends data, and check the baud rate",
            )
        age = trio.current_time() - self._arrived
        if config.max_age_s and age > config.max_age_s:
            raise MachineError(
                f"{self.name}: the last line is {age:.1f} s old",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check that the device still sends data",
            )
        return {**self._parser.parse(self._last.decode(errors="replace")), "age_s": round(age, 3)}

    async def get_status(self) -> Mapping[str, Any]:
        """Return the number of lines received, and of lines dropped as too long."""
        await trio.lowlevel.checkpoint()
        return {"lines": self._count, "dropped_lines": self._lines.dropped}
