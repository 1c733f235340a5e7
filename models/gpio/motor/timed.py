"""Open-loop control of a motor without an encoder. Speed is estimated from power, and position from time."""

from __future__ import annotations

import math

import trio

from models.common.control_loop import Goal
from models.common.motion import run_shielded, superseded
from models.gpio.motor.bridge import Bridge
from schema import ErrorKind, MachineError


class TimedDrive:
    """A drive that assumes a speed of `top_rpm` times power, without delay. `top_rpm` is 0 if unknown."""

    def __init__(self, name: str, *, bridge: Bridge, top_rpm: float) -> None:
        self.top_rpm = top_rpm
        self._name = name
        self._bridge = bridge
        self._command_lock = trio.Lock()  # commands are executed in the order of arrival
        self._goal: Goal | None = None
        self._position = 0.0  # position in revolutions at `since`
        self._since = trio.current_time()
        self._rpm = 0.0  # speed since `since`

    @property
    def busy(self) -> bool:
        """Whether a movement by a number of revolutions is in progress."""
        return self._goal is not None

    async def run(self) -> None:
        """Run until cancelled."""
        await trio.sleep_forever()

    async def stop(self) -> None:
        """Cancel the current command and switch the power off."""
        async with self._command_lock:
            self._replace(None)
            await self._off()

    def _replace(self, goal: Goal | None) -> None:
        if self._goal is not None:
            self._goal.end(superseded())
        self._goal = goal

    async def _off(self) -> None:
        try:
            await self._bridge.off()
        finally:
            self._update_estimate()

    async def _set(self, power: float) -> None:
        try:
            await self._bridge.set(power)
        finally:
            self._update_estimate()

    def _update_estimate(self) -> None:
        """Update the position estimate and the current speed."""
        now = trio.current_time()
        self._position += self._rpm / 60 * (now - self._since)
        self._since = now
        self._rpm = self._bridge.power * self.top_rpm

    async def set_power(self, power: float) -> None:
        """Apply power until the next command."""
        async with self._command_lock:
            self._replace(None)
            await self._set(power)

    async def set_rpm(self, rpm: float) -> None:
        """Apply the power for a speed. PRECONDITION if the highest speed is unknown."""
        await self.set_power(self._power_for(rpm))

    def _power_for(self, rpm: float) -> float:
        if not self.top_rpm:
            raise MachineError(
                f"{self._name}: the maximum speed is not known",
                kind=ErrorKind.PRECONDITION,
                remedy="configure max_rpm, or an encoder",
            )
        return max(-1.0, min(1.0, rpm / self.top_rpm))

    async def go_for(self, rpm: float, revolutions: float) -> None:
        """Turn for the estimated time of a number of revolutions, then stop."""
        power = self._power_for(rpm)
        async with self._command_lock:
            goal, end = await self._start_move(power, revolutions)
        await self._wait(goal, end)

    async def go_to(self, rpm: float, position: float) -> None:
        """Turn from the estimated position to `position`, then stop."""
        power = self._power_for(rpm)
        async with self._command_lock:
            self._update_estimate()
            if position == self._position:
                self._replace(None)
                await self._off()
                return
            goal, end = await self._start_move(power, position - self._position)
        await self._wait(goal, end)

    async def _start_move(self, power: float, revolutions: float) -> tuple[Goal, float]:
        goal = Goal(power, 0.0, revolutions)
        self._replace(goal)
        try:
            await self._set(math.copysign(power, revolutions))
        except BaseException:
            self._goal = None
            raise
        if not self._rpm:
            self._goal = None
            raise MachineError(
                f"{self._name}: this speed needs less power than min_power_pct",
                kind=ErrorKind.INVALID,
                remedy="use a higher speed",
            )
        return goal, self._since + abs(revolutions / self._rpm) * 60

    async def _wait(self, goal: Goal, end: float) -> None:
        try:
            with trio.CancelScope(deadline=end):
                await goal.ended.wait()
        finally:
            if self._goal is goal:
                await run_shielded(lambda: self._arrive(goal))
        if goal.error is not None:
            raise goal.error

    async def _arrive(self, goal: Goal) -> None:
        async with self._command_lock:
            if self._goal is goal:
                self._goal = None
                await self._off()

    async def position(self) -> float:
        """Return the estimated revolutions from zero."""
        await trio.lowlevel.checkpoint()
        self._update_estimate()
        return self._position

    async def reset_zero(self, offset: float) -> None:
        """Define the current estimate as `-offset`."""
        await trio.lowlevel.checkpoint()
        self._update_estimate()
        self._position = -offset
