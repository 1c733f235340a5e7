"""Encoders on the digital interrupts of a board: `incremental` with two tracks, `single` with one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec
import trio

from catalogue.gpio.encoder import IncrementalConfig, SingleConfig
from hal.control.quadrature import Quadrature
from runtime.builtin.gpio.ticks import following
from runtime.components.board import Board, Tick
from runtime.components.encoder import Encoder, EncoderPosition, EncoderProperties, PositionType
from runtime.resource import Attributes, Extra, Started, Unsupported


class TickEncoder(Encoder):
    """Counts while it runs, starting at 0."""

    async def run(self, *, task_status: Started) -> None:
        """Count edges. Fails if the board does; a dependent motor stops then."""
        config = self.attributes
        board = self.dependency(Board, config.board)
        self._zero = 0
        self._names = list(msgspec.structs.astuple(config.pins))
        with self.reserve(*(board.identify(pin) for pin in self._names)):
            async with following(board, self._names, self.count):
                task_status.started()
                await trio.sleep_forever()

    @abstractmethod
    def count(self, tick: Tick) -> None:
        """Take an edge into account."""

    @property
    @abstractmethod
    def ticks(self) -> int:
        """The count since it started."""

    async def get_position(self, position_type: PositionType | None = None, *, extra: Extra = None) -> EncoderPosition:
        """Ticks since the last reset; or degrees, if `ticks_per_rotation` is configured. Degrees are not wrapped."""
        await trio.lowlevel.checkpoint()
        ticks = self.ticks - self._zero
        if position_type is not PositionType.ANGLE_DEGREES:
            return EncoderPosition(float(ticks), PositionType.TICKS_COUNT)
        turn = self.attributes.ticks_per_rotation
        if not turn:
            raise Unsupported(f"{self.name} does not know degrees", remedy="configure ticks_per_rotation")
        return EncoderPosition(ticks * 360.0 / turn, PositionType.ANGLE_DEGREES)

    async def reset_position(self, *, extra: Extra = None) -> None:
        """Call the present position zero."""
        await trio.lowlevel.checkpoint()
        self._zero = self.ticks

    async def get_properties(self, *, extra: Extra = None) -> EncoderProperties:
        """Ticks always; degrees with `ticks_per_rotation`."""
        await trio.lowlevel.checkpoint()
        return EncoderProperties(
            ticks_count_supported=True, angle_degrees_supported=bool(self.attributes.ticks_per_rotation)
        )


class IncrementalEncoder(TickEncoder):
    """Two tracks. The status tells how many edges were missed: then the wiring is noisy or the shaft too fast."""

    Config: ClassVar[type[Attributes]] = IncrementalConfig

    async def run(self, *, task_status: Started) -> None:
        """Count edges of both tracks."""
        self._decoder = Quadrature()
        await super().run(task_status=task_status)

    def count(self, tick: Tick) -> None:
        """By the levels of both tracks."""
        self._decoder.edge(self._names.index(tick.pin_name), tick.high, tick.time)

    @property
    def ticks(self) -> int:
        """Forward minus backward."""
        return self._decoder.ticks

    async def get_status(self) -> Mapping[str, Any]:
        """Ticks since the start, and edges that were missed."""
        return {"ticks": self.ticks, "missed": self._decoder.missed}


class SingleEncoder(TickEncoder):
    """One track. Without a motor that names it, it counts up.

    It believes the motor: while the shaft still coasts against a new direction, it counts those ticks wrongly.
    """

    Config: ClassVar[type[Attributes]] = SingleConfig
    _direction: Callable[[], int] | None = None
    _ticks = 0

    @contextmanager
    def following(self, direction: Callable[[], int]) -> Iterator[None]:
        """Let a motor tell which way it turns (1 or -1) while the context is open."""
        before, self._direction = self._direction, direction
        try:
            yield
        finally:
            self._direction = before

    def count(self, tick: Tick) -> None:
        """Rises, in the motor's direction."""
        if tick.high:
            self._ticks += 1 if self._direction is None else self._direction()

    @property
    def ticks(self) -> int:
        """Forward minus backward."""
        return self._ticks

    async def get_status(self) -> Mapping[str, Any]:
        """Ticks since the start, and whether a motor tells the direction."""
        return {"ticks": self.ticks, "directed": self._direction is not None}
