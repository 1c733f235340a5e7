"""Pins of boards: switches, analog readers and digital interrupts that the configuration names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from engine import Board
from models.mqtt.entities import Entity
from models.mqtt.kinds import Kind, Observed
from schema import ErrorKind, MachineError

Read: TypeAlias = Callable[[Board, str], Awaitable[Observed]]

ON, OFF = "ON", "OFF"
_UNKNOWN_NAME: Final = (ErrorKind.NOT_FOUND, ErrorKind.UNSUPPORTED, ErrorKind.INVALID, ErrorKind.INTERNAL)
"""Errors by which boards answer that they do not know a name; those of modules are often internal errors."""


async def _interrupt(board: Board, name: str) -> Observed:
    count = await board.get_digital_interrupt_value(name)
    return Observed({"count": count}, [Entity("sensor", "count", {"state_class": "total_increasing"}, "count")])


async def _analog(board: Board, name: str) -> Observed:
    reading = await board.read_analog_reader(name)
    return Observed({"value": reading.value}, [Entity("sensor", "", {"state_class": "measurement"}, "value")])


async def _level(board: Board, name: str) -> Observed:
    settings: dict[str, Any] = {"payload_on": ON, "payload_off": OFF}
    state = ON if await board.get_gpio(name) else OFF
    return Observed({"state": state}, [Entity("switch", "", settings, "state", commands=True)])


_READS: Final[tuple[Read, ...]] = (_interrupt, _analog, _level)
"""In the order in which a board is asked: a digital interrupt is also a GPIO pin."""


@dataclass(slots=True)
class PublishedPin:
    """A pin of a board by its name. The first of `_READS` that the board answers is kept while the board knows it."""

    board: str
    name: str
    _read: Read | None = None

    @property
    def topic(self) -> str:
        """Its name in topics."""
        return f"{self.board}/{self.name}"

    def kind(self) -> Kind:
        """Return how the pin is read and commanded through its board."""
        return Kind(Board, self._observe, self._obey)

    async def _observe(self, board: Board) -> Observed:
        if self._read is None:
            return await self._first(board)
        try:
            return await self._read(board, self.name)
        except MachineError as error:
            if error.kind in {ErrorKind.NOT_FOUND, ErrorKind.UNSUPPORTED}:
                self._read = None  # the configuration of the board has changed
            raise

    async def _first(self, board: Board) -> Observed:
        reason = ""
        for read in _READS:
            try:
                observed = await read(board, self.name)
            except NotImplementedError:
                continue
            except MachineError as error:
                if error.kind not in _UNKNOWN_NAME:
                    raise
                reason = str(error)
            else:
                self._read = read
                return observed
        raise MachineError(
            f"{self.board} has no pin, analog reader or digital interrupt named {self.name!r}",
            kind=ErrorKind.NOT_FOUND,
            remedy=reason or f"check `pins` and the attributes of {self.board}",
        )

    async def _obey(self, board: Board, text: str) -> None:
        if text not in {ON, OFF}:
            raise MachineError(f"the command is {text[:100]!r}", kind=ErrorKind.INVALID, remedy=f"send {ON} or {OFF}")
        if self._read is None:
            await self._first(board)
        if self._read is not _level:
            raise MachineError(f"{self.topic} is not a GPIO pin, and has no commands", kind=ErrorKind.UNSUPPORTED)
        await board.set_gpio(self.name, text == ON)
