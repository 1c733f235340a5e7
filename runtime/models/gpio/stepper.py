"""Motor `gpiostepper`: a stepper motor on a driver chip with step and direction inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import trio

from catalogue.gpio.stepper import MAX_STEP_RATE, GpioStepperConfig, StepperPins
from hal.control.trajectory import Motion, at_speed, to_place
from runtime.engine.components.controls.board import Board
from runtime.engine.components.motion.motor import Motor, MotorProperties, Powered
from runtime.engine.resource import Attributes, Extra, Started
from runtime.models.drive import check_rpm, check_way
from runtime.models.motion import HALT_TIME, at_rest, every, finite
from runtime.models.pursuit import Goal, Pursuit
from schema.errors import ErrorKind, MachineError

MAX_BEATS: Final = 8  # periods of the control loop per step: more give smoother ramps
FEWEST_BEATS: Final = 2  # one with the step pin high, one with it low
BEAT_RATE: Final = MAX_STEP_RATE * FEWEST_BEATS  # Hz
LONGEST_PERIOD: Final = 0.02  # seconds, so that a slow motor reacts as quickly
STOP_TIME: Final = 1.0  # longest time of a stop in seconds, whatever the configured acceleration


class GpioStepper(Motor):
    """Every step is counted, so the position is exact as long as the motor follows.

    The motor is unpowered until the first command, and when the driver stops. A command during a move changes the speed
    within the configured acceleration. If a period of the control loop is late, the motor is slower for that moment and
    never catches up with faster steps. The status reports the number of periods lost that way.
    """

    Config: ClassVar[type[Attributes]] = GpioStepperConfig

    async def run(self, *, task_status: Started) -> None:
        """Reserve the pins and run the control loop until cancelled."""
        config: GpioStepperConfig = self.attributes
        self._board = board = self.dependency(Board, config.board)
        self.top_rpm = config.max_rpm or config.step_rate * 60 / config.steps
        self._acceleration = config.acceleration_rpm_per_s / 60 * config.steps or math.inf
        self._turn = trio.Lock()  # commands are executed in the order of arrival
        self._braking = math.inf  # deceleration of the last stop, in steps/s²
        self._motion = Motion(0.0)  # in steps
        self._steps = self._zero = 0
        self._risen = -math.inf  # time of the last step
        self._beats = 0  # periods by which the trajectory has advanced since
        self._lost = 0  # periods by which it has not advanced, because they were late
        self._high = self._enabled = False
        self._forward: bool | None = None  # level of `dir`
        self._pursuit = Pursuit(
            ticks=self.hardware.ticks, begin=self._begin, step=self._step, rest=self._rest, log=self.log
        )
        with self.reserve(*(board.identify(pin) for pin in config.pins.all())):
            try:
                await self._release()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._pursuit.run)
                    task_status.started()
            finally:
                await at_rest(self._release)

    async def _release(self) -> None:
        """Set the step pin low and disable the chip; attempt both even if one fails."""
        pins: StepperPins = self.attributes.pins
        await every(lambda: self._board.set_gpio(pins.step, False), lambda: self._enable(False))
        self._high = False

    async def _enable(self, on: bool) -> None:
        pins: StepperPins = self.attributes.pins
        self._enabled = on
        if pins.en_high:
            await self._board.set_gpio(pins.en_high, on)
        if pins.en_low:
            await self._board.set_gpio(pins.en_low, not on)

    async def _begin(self) -> None:
        await self._enable(True)

    async def _rest(self) -> None:
        self._motion = Motion(float(self._steps))
        if self.attributes.idle == "release":
            await self._release()
        elif self._high:
            await self._board.set_gpio(self.attributes.pins.step, False)
            self._high = False

    async def _step(self, goal: Goal, beats: int) -> bool:
        # Periods that passed before the last step was done, or after the next one was due, would cause early steps.
        since = (trio.current_time() - self._risen) / goal.period - self._beats
        used = 0
        while used < max(1, min(beats, since)) and not (used and self._due):
            self._advance(goal)
            used += 1
        self._beats += used
        self._lost += beats - used
        if self._high:
            await self._board.set_gpio(self.attributes.pins.step, False)
            self._high = False
            return False
        due = self._due
        if due == 0:
            return self._motion.velocity == 0 and (goal.speed == 0 or goal.place == self._motion.position)
        if self._forward is not (due > 0):
            await self._board.set_gpio(self.attributes.pins.dir, due > 0)
            self._forward = due > 0
            return False
        await self._rise(1 if due > 0 else -1)
        return False

    def _advance(self, goal: Goal) -> None:
        """Advance the trajectory by one period."""
        dt = goal.period
        if goal.place is not None:
            self._motion = to_place(self._motion, goal.place, goal.speed, self._acceleration, dt)
        else:
            self._motion = at_speed(self._motion, goal.speed, self._acceleration if goal.speed else self._braking, dt)

    @property
    def _due(self) -> int:
        """Number of steps by which the motor is behind the trajectory."""
        return math.floor(self._motion.position + 0.5) - self._steps

    async def _rise(self, way: int) -> None:
        """Make and count one step, shielded from cancellation. TIMEOUT if the board does not answer."""
        with trio.move_on_after(HALT_TIME, shield=True) as limit:
            await self._board.set_gpio(self.attributes.pins.step, True)
            self._steps += way
            self._high = True
            self._risen, self._beats = trio.current_time(), 0
        if limit.cancelled_caught:
            raise MachineError(
                f"{self.name}: {self._board.name} did not answer within {HALT_TIME:g} s",
                kind=ErrorKind.TIMEOUT,
                remedy="check the board; the position may be wrong by one step",
            )

    def _goal(self, rpm: float, place: int | None = None) -> Goal:
        """Create a goal whose period is short enough for the new speed and the current one."""
        top = self.top_rpm
        if abs(rpm) > top:
            self.log.warning("speed limited", asked_rpm=rpm, max_rpm=top)
        speed = max(-top, min(top, rpm)) / 60 * self.attributes.steps
        rate = max(abs(speed), abs(self._motion.velocity))
        beats = max(FEWEST_BEATS, min(MAX_BEATS, math.floor(BEAT_RATE / rate))) if rate else MAX_BEATS
        period = min(LONGEST_PERIOD, 1 / (rate * beats)) if rate else LONGEST_PERIOD
        return Goal(speed, period, None if place is None else float(place))

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        """Turn at this share of the highest speed; 0 stops."""
        finite("the power", power_pct)
        if power_pct == 0:
            await self.stop()
        else:
            async with self._turn:
                self._pursuit.pursue(self._goal(max(-1.0, min(1.0, power_pct)) * self.top_rpm))

    async def set_rpm(self, rpm: float, *, extra: Extra = None) -> None:
        """Turn at a speed until the next command."""
        check_rpm(str(self.name), rpm)
        async with self._turn:
            self._pursuit.pursue(self._goal(rpm))

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        """Turn by a number of revolutions, rounded to whole steps."""
        check_rpm(str(self.name), rpm)
        check_way(str(self.name), revolutions)
        way = round(math.copysign(revolutions, rpm * revolutions) * self.attributes.steps)
        async with self._turn:
            goal = self._goal(abs(rpm), self._steps + way)
            self._pursuit.pursue(goal)
        await self._pursuit.wait(goal, self.stop)

    async def go_to(self, rpm: float, position_revolutions: float, *, extra: Extra = None) -> None:
        """Turn to a position, rounded to whole steps."""
        check_rpm(str(self.name), rpm)
        finite("the position", position_revolutions)
        async with self._turn:
            goal = self._goal(abs(rpm), round(position_revolutions * self.attributes.steps) + self._zero)
            self._pursuit.pursue(goal)
        await self._pursuit.wait(goal, self.stop)

    async def stop(self, *, extra: Extra = None) -> None:
        """Decelerate to rest within a second. Returns at rest, or when a newer command has taken over."""
        async with self._turn:
            if self._pursuit.goal is None:
                await self._rest()
                return
            self._braking = max(self._acceleration, abs(self._motion.velocity) / STOP_TIME)
            goal = self._goal(0.0)
            self._pursuit.pursue(goal)
        try:
            await self._pursuit.wait(goal)
        except MachineError as error:
            if error.kind is not ErrorKind.CANCELLED:
                raise

    async def reset_zero_position(self, offset: float, *, extra: Extra = None) -> None:
        """Define the current position as `-offset`, rounded to whole steps."""
        finite("the offset", offset)
        await trio.lowlevel.checkpoint()
        self._zero = self._steps + round(offset * self.attributes.steps)

    async def get_position(self, *, extra: Extra = None) -> float:
        """Return the revolutions from zero, from the steps counted."""
        await trio.lowlevel.checkpoint()
        return float((self._steps - self._zero) / self.attributes.steps)

    async def get_properties(self, *, extra: Extra = None) -> MotorProperties:
        """Report support of positions."""
        await trio.lowlevel.checkpoint()
        return MotorProperties(position_reporting=True)

    async def is_powered(self, *, extra: Extra = None) -> Powered:
        """Return whether the chip is enabled; the power is the share of the highest speed."""
        await trio.lowlevel.checkpoint()
        share = self._motion.velocity * 60 / self.attributes.steps / self.top_rpm
        return Powered(is_on=self._enabled, power_pct=max(-1.0, min(1.0, share)))

    async def is_moving(self) -> bool:
        """Return whether a command is in progress."""
        await trio.lowlevel.checkpoint()
        return self._pursuit.goal is not None

    async def get_status(self) -> Mapping[str, Any]:
        """Return the steps since the start, and the late periods of the control loop that were skipped."""
        return {"steps": self._steps, "lost_beats": self._lost}
