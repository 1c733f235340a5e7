"""Closed-loop control of a motor's speed and position with an encoder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import structlog
import trio

from engine import Encoder, PositionType
from hal.control import Gains, SpeedControl
from hal.ports import Ticks
from models.common.control_loop import ControlLoop, Goal
from models.gpio.motor.bridge import Bridge
from schema import ErrorKind, MachineError

SETTLE_LIMIT: Final = 30.0  # seconds for coming to rest at a position; with much friction it takes half of that
RUNAWAY_LIMIT: Final = 1.0  # limit in seconds for turning against full power; reversing a spinning motor takes less


class EncodedDrive:
    """A drive whose control loop runs only while a command is in progress.

    `ticks_per_rotation` is negative if the encoder counts down while the motor turns forward.
    """

    def __init__(
        self,
        name: str,
        *,
        bridge: Bridge,
        encoder: Encoder,
        ticks_per_rotation: int,
        top_rpm: float,
        acceleration: float,
        gains: Gains,
        stall: float,
        period: float,
        ticks: Callable[[float], AbstractAsyncContextManager[Ticks]],
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        self.top_rpm = top_rpm
        self._name = name
        self._encoder = encoder
        self._ticks = ticks_per_rotation
        self._stall = stall
        self._period = period
        self._bridge = bridge
        self._command_lock = trio.Lock()  # commands are executed in the order of arrival
        self._zero = 0.0
        self._control = SpeedControl(
            top_speed=top_rpm / 60,
            acceleration=acceleration,
            ticks_per_revolution=abs(ticks_per_rotation),
            gains=gains,
        )
        self._loop = ControlLoop(ticks=ticks, begin=self._begin, step=self._step, rest=bridge.off, log=log)

    @property
    def busy(self) -> bool:
        """Whether a command is in progress."""
        return self._loop.goal is not None

    async def run(self) -> None:
        """Run until cancelled."""
        await self._loop.run()

    async def stop(self) -> None:
        """Cancel the current command and switch the power off."""
        async with self._command_lock:
            await self._loop.stop()
            await self._bridge.off()

    async def _revolutions(self) -> float:
        position = await self._encoder.get_position(PositionType.TICKS_COUNT)
        return position.value / self._ticks

    async def _begin(self) -> None:
        self._control.begin(await self._revolutions())

    async def _step(self, goal: Goal, periods: int) -> bool:
        control, position, dt = self._control, await self._revolutions(), periods * self._period
        if goal.position is None:
            power: float | None = control.to_speed(position, goal.speed, dt)
        else:
            power = control.to_place(position, goal.position, goal.speed, dt)
        if power is None:
            return True
        if self._stall and control.starved > self._stall:
            raise MachineError(
                f"{self._name}: no tick of {self._encoder.name} in {control.starved:.1f} s at full power",
                kind=ErrorKind.UNAVAILABLE,
                remedy="free the shaft, or check the wiring of motor and encoder",
            )
        if control.runaway > RUNAWAY_LIMIT:
            raise MachineError(
                f"{self._name}: {self._encoder.name} counts in the opposite direction of the power",
                kind=ErrorKind.PRECONDITION,
                remedy="swap pins a and b of the encoder, or of the motor",
            )
        if control.hunting > SETTLE_LIMIT:
            raise MachineError(
                f"{self._name} does not come to rest at the target position",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check what turns the shaft, or reduce control_parameters.i",
            )
        await self._bridge.set(power)
        return False

    async def set_power(self, power: float) -> None:
        """Stop the control loop and apply power."""
        async with self._command_lock:
            await self._loop.stop()
            await self._bridge.set(power)

    def _speed(self, rpm: float) -> float:
        return max(-self.top_rpm, min(self.top_rpm, rpm)) / 60

    async def set_rpm(self, rpm: float) -> None:
        """Keep a speed until the next command."""
        async with self._command_lock:
            self._loop.pursue(Goal(self._speed(rpm), self._period))

    async def go_for(self, rpm: float, revolutions: float) -> None:
        """Turn by `revolutions` from the current position, then stop."""
        async with self._command_lock:
            goal = self._pursue(rpm, await self._revolutions() + revolutions)
        await self._loop.wait(goal)

    async def go_to(self, rpm: float, position: float) -> None:
        """Turn to `position`, then stop."""
        async with self._command_lock:
            goal = self._pursue(rpm, position + self._zero)
        await self._loop.wait(goal)

    def _pursue(self, rpm: float, position: float) -> Goal:
        goal = Goal(self._speed(rpm), self._period, self._control.nearest(position))
        self._loop.pursue(goal)
        return goal

    async def position(self) -> float:
        """Return the measured revolutions from zero."""
        return await self._revolutions() - self._zero

    async def reset_zero(self, offset: float) -> None:
        """Define the current position as `-offset`. The encoder is not reset."""
        self._zero = await self._revolutions() + offset
