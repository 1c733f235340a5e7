"""Encoders on digital interrupts of a board: `incremental` with two tracks, `single` with one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec
import trio

from engine import (
    Attributes,
    Board,
    Encoder,
    EncoderPosition,
    EncoderProperties,
    Extra,
    PositionType,
    Started,
    Tick,
    Unsupported,
    model,
)
from hal.control import Quadrature
from models.common.ticks import following
from models.gpio.encoder.attributes import IncrementalConfig, SingleConfig


class TickEncoder(Encoder):
    """Counts ticks from 0 while it runs."""

    async def run(self, *, task_status: Started) -> None:
        """Count edges until cancelled. Fails if the board fails, which stops a dependent motor."""
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
        """Count an edge."""

    @property
    @abstractmethod
    def ticks(self) -> int:
        """The number of ticks since the start."""

    async def get_position(self, position_type: PositionType | None = None, *, extra: Extra = None) -> EncoderPosition:
        """Return ticks since the last reset, or degrees (not wrapped) if `ticks_per_rotation` is configured."""
        await trio.lowlevel.checkpoint()
        ticks = self.ticks - self._zero
        if position_type is not PositionType.ANGLE_DEGREES:
            return EncoderPosition(float(ticks), PositionType.TICKS_COUNT)
        ticks_per_turn = self.attributes.ticks_per_rotation
        if not ticks_per_turn:
            raise Unsupported(f"{self.name} cannot report degrees", remedy="configure ticks_per_rotation")
        return EncoderPosition(ticks * 360.0 / ticks_per_turn, PositionType.ANGLE_DEGREES)

    async def reset_position(self, *, extra: Extra = None) -> None:
        """Define the current position as zero."""
        await trio.lowlevel.checkpoint()
        self._zero = self.ticks

    async def get_properties(self, *, extra: Extra = None) -> EncoderProperties:
        """Report support of ticks, and of degrees if `ticks_per_rotation` is configured."""
        await trio.lowlevel.checkpoint()
        return EncoderProperties(
            ticks_count_supported=True, angle_degrees_supported=bool(self.attributes.ticks_per_rotation)
        )


@model("rdk:builtin:incremental")
class IncrementalEncoder(TickEncoder):
    """Has two tracks. The status reports missed edges, which indicate noisy wiring or too high a speed."""

    Config: ClassVar[type[Attributes]] = IncrementalConfig

    async def run(self, *, task_status: Started) -> None:
        """Count the edges of both tracks until cancelled."""
        self._decoder = Quadrature()
        await super().run(task_status=task_status)

    def count(self, tick: Tick) -> None:
        """Decode an edge from the levels of both tracks."""
        self._decoder.edge(self._names.index(tick.pin_name), tick.high, tick.time)

    @property
    def ticks(self) -> int:
        """Forward minus backward ticks since the start."""
        return self._decoder.ticks

    async def get_status(self) -> Mapping[str, Any]:
        """Return the ticks since the start, and the number of missed edges."""
        return {"ticks": self.ticks, "missed": self._decoder.missed}


@model("rdk:builtin:single")
class SingleEncoder(TickEncoder):
    """Has one track. It counts in the direction of the motor that names it, upwards without such a motor.

    The direction is that of the motor's power, so ticks are miscounted while the shaft coasts after a reversal.
    """

    Config: ClassVar[type[Attributes]] = SingleConfig
    _direction: Callable[[], int] | None = None
    _ticks = 0

    @contextmanager
    def following(self, direction: Callable[[], int]) -> Iterator[None]:
        """Take the direction (1 or -1) from a motor while the context is open."""
        previous, self._direction = self._direction, direction
        try:
            yield
        finally:
            self._direction = previous

    def count(self, tick: Tick) -> None:
        """Count a rising edge in the direction of the motor."""
        if tick.high:
            self._ticks += 1 if self._direction is None else self._direction()

    @property
    def ticks(self) -> int:
        """Forward minus backward ticks since the start."""
        return self._ticks

    async def get_status(self) -> Mapping[str, Any]:
        """Return the ticks since the start, and whether a motor determines the direction."""
        return {"ticks": self.ticks, "directed": self._direction is not None}
