"""Generic component `serial_port`: commands for a raw serial device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Context, Generic, Started, model
from hal import Fault, HalError
from models.devices.common.commands import Keys, decoded, encoded, seconds, whole
from models.devices.common.opening import opened
from models.devices.serial_port.attributes import SerialPortConfig
from schema import ErrorKind, MachineError

DEFAULT_TIMEOUT: Final = 5.0  # default limit of a command in seconds, for writing and reading together
_KEYS: Final = ("write", "read", "read_line", "until", "available", "clear", "timeout_s", "encoding")
_READS: Final = ("read", "read_line", "until", "available")


class _Received:
    """A bounded buffer of received bytes; when it is full, the oldest bytes are dropped."""

    def __init__(self, size: int) -> None:
        self.data = bytearray()
        self.total = 0
        self.lost = 0
        self._size = size
        self._arrival = trio.Event()

    def put(self, data: bytes | bytearray) -> None:
        self.total += len(data)
        self.data += data
        if (excess := len(self.data) - self._size) > 0:
            del self.data[:excess]
            self.lost += excess
        self._arrival.set()

    def take(self, count: int) -> bytes:
        data = bytes(self.data[:count])
        del self.data[:count]
        return data

    async def arrival(self) -> None:
        """Wait for more data."""
        self._arrival = trio.Event()
        await self._arrival.wait()


@model("rdk:builtin:serial_port")
class SerialPort(Generic):
    """Reads continuously, so that no data is lost between commands and unplugging is detected at once."""

    Config: ClassVar[type[Attributes]] = SerialPortConfig
    attributes: SerialPortConfig
    _port: trio.abc.Stream  # set by run

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._received = _Received(self.attributes.buffer_bytes)
        self._written = 0
        self._command_lock = trio.Lock()  # keeps a question and its answer together

    async def run(self, *, task_status: Started) -> None:
        """Run the driver; ready when the port is open. HalError (GONE) if the device disappears."""
        config = self.attributes
        async with opened(config, self) as self._port:
            task_status.started()
            while True:
                self._received.put(await self._port.receive_some())

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write, then read; both are optional. Commands are executed one after the other.

        `write`: data to send. `clear`: true discards data received before. Then one of `read`: a number of bytes;
        `read_line`: true for a line, returned without its end; `until`: data up to and including this text;
        `available`: true for all data received so far. `timeout_s` (5): limit for writing and reading; `encoding`: of
        data in this command, instead of the configured one. Returns `written` (bytes), and `line` or `data`. After a
        TIMEOUT, received data is kept for the next command.
        """
        keys = Keys(command, _KEYS, str(self.name))
        encoding = keys.choice("encoding", ("utf-8", "latin-1", "base64"), self.attributes.encoding)
        limit = seconds(command, "timeout_s", DEFAULT_TIMEOUT)
        reads = [key for key in _READS if key in command and command[key] is not False]
        if len(reads) > 1:
            raise MachineError(
                f"{' and '.join(reads)} cannot be combined in one command",
                kind=ErrorKind.INVALID,
                remedy="use one of them",
            )
        if not reads and "write" not in command and "clear" not in command:
            raise MachineError(
                f"the command for {self.name} has none of write, read and clear",
                kind=ErrorKind.INVALID,
                remedy=keys.remedy,
            )
        outgoing = decoded(command["write"], encoding, "write") if "write" in command else None
        ending = decoded(command["until"], encoding, "until") if "until" in reads else b"\n"
        if not ending:
            raise MachineError("until is empty", kind=ErrorKind.INVALID, remedy="use the text that ends an answer")
        count = whole(command, "read", 1, self.attributes.buffer_bytes) if "read" in reads else 0
        answer: dict[str, Any] = {}
        async with self._command_lock:
            if command.get("clear"):
                self._received.data.clear()
            with trio.move_on_after(limit) as scope:
                if outgoing is not None:
                    await self._send(outgoing)
                    self._written += len(outgoing)
                    answer["written"] = len(outgoing)
                for key in reads:
                    name, data = await self._read(key, count, ending)
                    answer[name] = encoded(data, encoding)
        if scope.cancelled_caught:
            problem = (
                f"did not answer within {limit:g} s"
                if "written" in answer or outgoing is None
                else "does not accept data"
            )
            raise MachineError(
                f"{self.name}: the device {problem}; {len(self._received.data)} received bytes are waiting",
                kind=ErrorKind.TIMEOUT,
                remedy="check the device, the baud rate, and what ends its answers",
            )
        await trio.lowlevel.checkpoint()
        return answer

    async def _send(self, data: bytes) -> None:
        try:
            await self._port.send_all(data)
        except trio.ClosedResourceError as error:  # the driver has failed and will be stopped
            raise HalError(f"{self.name}: the port is being closed", Fault.GONE) from error

    async def _read(self, key: str, count: int, ending: bytes) -> tuple[str, bytes]:
        received = self._received
        if key == "available":
            return "data", received.take(len(received.data))
        if key == "read":
            while len(received.data) < count:
                await received.arrival()
            return "data", received.take(count)
        searched = 0  # where to continue the search, so that a long slow answer is not searched repeatedly
        while (end := received.data.find(ending, max(0, searched - len(ending) + 1))) < 0:
            searched, lost = len(received.data), received.lost
            await received.arrival()
            searched = max(0, searched - (received.lost - lost))
        data = received.take(end + len(ending))
        return ("line", data.rstrip(b"\r\n")) if key == "read_line" else ("data", data)

    async def get_status(self) -> Mapping[str, Any]:
        """Return the number of bytes received, written, waiting to be read, and lost because they were not read."""
        await trio.lowlevel.checkpoint()
        received = self._received
        return {
            "bytes_received": received.total,
            "bytes_written": self._written,
            "bytes_waiting": len(received.data),
            "bytes_lost": received.lost,
        }
