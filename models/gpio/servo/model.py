"""Servo `gpio`: a servo controlled by the width of pulses on a pin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Board, Extra, Servo, Started, model
from models.common.motion import ExclusiveMotion, run_shielded
from models.gpio.servo.attributes import GpioServoConfig
from schema import ErrorKind, MachineError

GLIDE_PERIOD: Final = 0.02  # seconds between two angles of a speed-limited move: one pulse of an analog servo


@model("rdk:builtin:gpio")
class GpioServo(Servo):
    """A servo does not report its position, so the position is the angle of the pulses.

    Without `speed_deg_per_s`, a move returns as soon as the pulses have the new width, while the servo still turns.
    When the driver stops, the pulses end and the shaft is released.
    """

    Config: ClassVar[type[Attributes]] = GpioServoConfig
    _angle: float | None = None  # None before the first command

    async def run(self, *, task_status: Started) -> None:
        """Reserve the pin until cancelled. No pulses at stop, nor at start without a starting position."""
        config: GpioServoConfig = self.attributes
        self._board = board = self.dependency(Board, config.board)
        self._motion = ExclusiveMotion()
        self._pulsing = False
        with self.reserve(board.identify(config.pin)):
            try:
                await self._release()
                await board.set_pwm_frequency(config.pin, config.frequency_hz)
                if config.starting_position_deg is not None:
                    await self._set_angle(config.starting_position_deg)
                task_status.started()
                await trio.sleep_forever()
            finally:
                await run_shielded(self._release)

    async def _release(self) -> None:
        await self._board.set_pwm(self.attributes.pin, 0.0)
        self._pulsing = False

    async def _set_angle(self, angle: float) -> None:
        config: GpioServoConfig = self.attributes
        await self._board.set_pwm(config.pin, config.duty(angle))
        self._angle = angle
        self._pulsing = True

    async def _halt(self) -> None:
        if self.attributes.at_stop == "release":
            await self._release()

    async def move(self, angle_deg: int, *, extra: Extra = None) -> None:
        """Turn to the angle at `speed_deg_per_s`; the first move, from an unknown angle, at full speed."""
        config: GpioServoConfig = self.attributes
        if not config.min_angle_deg <= angle_deg <= config.max_angle_deg:
            raise MachineError(
                f"{self.name}: an angle of {angle_deg} degrees is out of reach",
                kind=ErrorKind.INVALID,
                remedy=f"use {config.min_angle_deg:g} to {config.max_angle_deg:g}",
            )
        async with self._motion.begin(self._halt):
            if self._angle is not None and config.speed_deg_per_s:
                await self._move_at_speed(self._angle, angle_deg, config.speed_deg_per_s)
            else:
                await self._set_angle(angle_deg)

    async def _move_at_speed(self, start: float, end: float, speed: float) -> None:
        moved = 0.0
        async with self.hardware.ticks(GLIDE_PERIOD) as ticks:
            async for periods in ticks:
                moved += speed * GLIDE_PERIOD * periods
                if moved >= abs(end - start):
                    break
                await self._set_angle(start + math.copysign(moved, end - start))
        await self._set_angle(end)

    async def get_position(self, *, extra: Extra = None) -> int:
        """Return the rounded angle of the pulses. PRECONDITION before the first move."""
        await trio.lowlevel.checkpoint()
        if self._angle is None:
            raise MachineError(
                f"{self.name} has not been moved yet, so its position is not known",
                kind=ErrorKind.PRECONDITION,
                remedy="move it, or configure starting_position_deg",
            )
        return round(self._angle)

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop a speed-limited move at its current angle, then hold or release the shaft according to `at_stop`."""
        await self._motion.supersede()
        await self._halt()

    async def is_moving(self) -> bool:
        """Return whether a speed-limited move is in progress."""
        await trio.lowlevel.checkpoint()
        return self._motion.running

    async def get_status(self) -> Mapping[str, Any]:
        """Return the angle, and whether there are pulses."""
        return {"angle_deg": self._angle, "pulses": self._pulsing}
