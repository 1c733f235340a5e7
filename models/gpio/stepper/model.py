"""Motor `gpiostepper`: a stepper motor on a driver chip with step and direction inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Board, Extra, Motor, MotorProperties, Powered, Started, model
from hal.control import MotionState, at_speed, to_place
from models.common.control_loop import ControlLoop, Goal
from models.common.drive import check_revolutions, check_rpm
from models.common.motion import HALT_TIME, check_finite, run_all, run_shielded
from models.gpio.stepper.attributes import MAX_STEP_RATE, GpioStepperConfig, StepperPins
from schema import ErrorKind, MachineError

MAX_PERIODS_PER_STEP: Final = 8  # periods of the control loop per step: more give smoother ramps
MIN_PERIODS_PER_STEP: Final = 2  # one with the step pin high, one with it low
MAX_CONTROL_RATE: Final = MAX_STEP_RATE * MIN_PERIODS_PER_STEP  # Hz
LONGEST_PERIOD: Final = 0.02  # seconds, so that a slow motor reacts as quickly
STOP_TIME: Final = 1.0  # longest time of a stop in seconds, whatever the configured acceleration


@model("rdk:builtin:gpiostepper")
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
        self._command_lock = trio.Lock()  # commands are executed in the order of arrival
        self._braking = math.inf  # deceleration of the last stop, in steps/s²
        self._motion = MotionState(0.0)  # in steps
        self._steps = self._zero = 0
        self._last_step_time = -math.inf  # time of the last step
        self._periods = 0  # periods by which the trajectory has advanced since
        self._lost_periods = 0  # periods by which it has not advanced, because they were late
        self._step_pin_high = self._enabled = False
        self._forward: bool | None = None  # level of `dir`
        self._loop = ControlLoop(
            ticks=self.hardware.ticks, begin=self._begin, step=self._step, rest=self._rest, log=self.log
        )
        with self.reserve(*(board.identify(pin) for pin in config.pins.all())):
            try:
                await self._release()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._loop.run)
                    task_status.started()
            finally:
                await run_shielded(self._release)

    async def _release(self) -> None:
        """Set the step pin low and disable the chip; attempt both even if one fails."""
        pins: StepperPins = self.attributes.pins
        await run_all(lambda: self._board.set_gpio(pins.step, False), lambda: self._enable(False))
        self._step_pin_high = False

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
        self._motion = MotionState(float(self._steps))
        if self.attributes.idle == "release":
            await self._release()
        elif self._step_pin_high:
            await self._board.set_gpio(self.attributes.pins.step, False)
            self._step_pin_high = False

    async def _step(self, goal: Goal, periods: int) -> bool:
        # Periods that passed before the last step was done, or after the next one was due, would cause early steps.
        elapsed_periods = (trio.current_time() - self._last_step_time) / goal.period - self._periods
        advanced = 0
        while advanced < max(1, min(periods, elapsed_periods)) and not (advanced and self._steps_due):
            self._advance(goal)
            advanced += 1
        self._periods += advanced
        self._lost_periods += periods - advanced
        if self._step_pin_high:
            await self._board.set_gpio(self.attributes.pins.step, False)
            self._step_pin_high = False
            return False
        steps_due = self._steps_due
        if steps_due == 0:
            return self._motion.velocity == 0 and (goal.speed == 0 or goal.position == self._motion.position)
        if self._forward is not (steps_due > 0):
            await self._board.set_gpio(self.attributes.pins.dir, steps_due > 0)
            self._forward = steps_due > 0
            return False
        await self._make_step(1 if steps_due > 0 else -1)
        return False

    def _advance(self, goal: Goal) -> None:
        """Advance the trajectory by one period."""
        dt = goal.period
        if goal.position is not None:
            self._motion = to_place(self._motion, goal.position, goal.speed, self._acceleration, dt)
        else:
            self._motion = at_speed(self._motion, goal.speed, self._acceleration if goal.speed else self._braking, dt)

    @property
    def _steps_due(self) -> int:
        """Number of steps by which the motor is behind the trajectory."""
        return math.floor(self._motion.position + 0.5) - self._steps

    async def _make_step(self, direction: int) -> None:
        """Make and count one step, shielded from cancellation. TIMEOUT if the board does not answer."""
        with trio.move_on_after(HALT_TIME, shield=True) as limit:
            await self._board.set_gpio(self.attributes.pins.step, True)
            self._steps += direction
            self._step_pin_high = True
            self._last_step_time, self._periods = trio.current_time(), 0
        if limit.cancelled_caught:
            raise MachineError(
                f"{self.name}: {self._board.name} did not answer within {HALT_TIME:g} s",
                kind=ErrorKind.TIMEOUT,
                remedy="check the board; the position may be wrong by one step",
            )

    def _goal(self, rpm: float, position: int | None = None) -> Goal:
        """Create a goal whose period is short enough for the new speed and the current one."""
        top_rpm = self.top_rpm
        if abs(rpm) > top_rpm:
            self.log.warning("speed limited", asked_rpm=rpm, max_rpm=top_rpm)
        speed = max(-top_rpm, min(top_rpm, rpm)) / 60 * self.attributes.steps
        rate = max(abs(speed), abs(self._motion.velocity))
        fitting = math.floor(MAX_CONTROL_RATE / rate) if rate else MAX_PERIODS_PER_STEP
        periods = max(MIN_PERIODS_PER_STEP, min(MAX_PERIODS_PER_STEP, fitting))
        period = min(LONGEST_PERIOD, 1 / (rate * periods)) if rate else LONGEST_PERIOD
        return Goal(speed, period, None if position is None else float(position))

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        """Turn at this share of the highest speed; 0 stops."""
        check_finite("the power", power_pct)
        if power_pct == 0:
            await self.stop()
        else:
            async with self._command_lock:
                self._loop.pursue(self._goal(max(-1.0, min(1.0, power_pct)) * self.top_rpm))

    async def set_rpm(self, rpm: float, *, extra: Extra = None) -> None:
        """Turn at a speed until the next command."""
        check_rpm(str(self.name), rpm)
        async with self._command_lock:
            self._loop.pursue(self._goal(rpm))

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        """Turn by a number of revolutions, rounded to whole steps."""
        check_rpm(str(self.name), rpm)
        check_revolutions(str(self.name), revolutions)
        steps = round(math.copysign(revolutions, rpm * revolutions) * self.attributes.steps)
        async with self._command_lock:
            goal = self._goal(abs(rpm), self._steps + steps)
            self._loop.pursue(goal)
        await self._loop.wait(goal, self.stop)

    async def go_to(self, rpm: float, position_revolutions: float, *, extra: Extra = None) -> None:
        """Turn to a position, rounded to whole steps."""
        check_rpm(str(self.name), rpm)
        check_finite("the position", position_revolutions)
        async with self._command_lock:
            goal = self._goal(abs(rpm), round(position_revolutions * self.attributes.steps) + self._zero)
            self._loop.pursue(goal)
        await self._loop.wait(goal, self.stop)

    async def stop(self, *, extra: Extra = None) -> None:
        """Decelerate to rest within a second. Returns at rest, or when a newer command has taken over."""
        async with self._command_lock:
            if self._loop.goal is None:
                await self._rest()
                return
            self._braking = max(self._acceleration, abs(self._motion.velocity) / STOP_TIME)
            goal = self._goal(0.0)
            self._loop.pursue(goal)
        try:
            await self._loop.wait(goal)
        except MachineError as error:
            if error.kind is not ErrorKind.CANCELLED:
                raise

    async def reset_zero_position(self, offset: float, *, extra: Extra = None) -> None:
        """Define the current position as `-offset`, rounded to whole steps."""
        check_finite("the offset", offset)
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
        fraction = self._motion.velocity * 60 / self.attributes.steps / self.top_rpm
        return Powered(is_on=self._enabled, power_pct=max(-1.0, min(1.0, fraction)))

    async def is_moving(self) -> bool:
        """Return whether a command is in progress."""
        await trio.lowlevel.checkpoint()
        return self._loop.goal is not None

    async def get_status(self) -> Mapping[str, Any]:
        """Return the steps since the start, and the late periods of the control loop that were skipped."""
        return {"steps": self._steps, "lost_beats": self._lost_periods}
