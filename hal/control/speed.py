"""Control of a motor's speed and position by its encoder: it follows a trajectory with feed-forward and PID.

Positions are in revolutions, speeds in revolutions per second, power is -1 to 1. The error of the PID is the speed
error relative to the top speed. Its integral is not summed up but measured, as the distance of the shaft to the
trajectory. So the average speed is exact to a tick, and a target position is reached within a tick.
"""

from __future__ import annotations

import math
from typing import Final

from hal.control.pid import Gains, pid_output
from hal.control.trajectory import MotionState, at_speed, to_place

# For a first-order motor with a time constant of 0.02 to 0.3 s the damping is between 0.6 and 2.
DEFAULT_GAINS: Final = Gains(p=0.5, i=5.0)
SMOOTHING: Final = 0.04  # seconds: time constant of the measured speed
NEAR: Final = 1 / 720  # revolutions: tolerance of the target position, half a degree, or half a tick if that is more
REST_TIME: Final = 0.2  # seconds without a tick at the target until the shaft counts as resting
STUCK_TIME: Final = 0.1  # seconds without a tick off the target until the shaft counts as held by friction
NUDGE: Final = 0.5  # power per second that is added while friction holds the shaft off the target
EASE: Final = 0.9  # the factor by which that power decreases in each control period in which the shaft moves
FREE_LAG: Final = 1.0  # seconds at top speed by which the trajectory may be ahead if there is no integral gain


class SpeedControl:
    """The controller of one motor. Call `to_speed` or `to_place` in each control period with the encoder's position.

    `starved` is the time in seconds for which full power has caused no tick, `runaway` for which the shaft has turned
    against full power, `hunting` for which the trajectory has ended but the shaft does not rest at the target.
    """

    def __init__(
        self, *, top_speed: float, acceleration: float, ticks_per_revolution: float, gains: Gains = DEFAULT_GAINS
    ) -> None:
        self._top = top_speed
        self._acceleration = acceleration
        self._gains = gains
        self._ticks = ticks_per_revolution
        self._near = max(0.5 / ticks_per_revolution, NEAR)
        self._lag = top_speed / gains.i if gains.i else top_speed * FREE_LAG
        self.begin(0.0)

    def begin(self, position: float) -> None:
        """Start at `position`, at rest."""
        self.starved = self.runaway = self.hunting = 0.0
        self._reference = MotionState(position)
        self._last = position
        self._speed = self._error = self._nudge = 0.0
        self._still = 0.0  # seconds without a tick
        self._side = 0.0  # the direction of the target at the last nudge: 1 or -1
        self._gentle = 1.0  # factor of the nudge, reduced after it went too far

    def nearest(self, place: float) -> float:
        """Return the position of the tick nearest to `place`, since other positions cannot be measured."""
        return round(place * self._ticks) / self._ticks

    def to_speed(self, position: float, speed: float, dt: float) -> float:
        """Return the power for the next control period of `dt` seconds, to reach `speed`."""
        self._nudge = self.hunting = 0.0
        self._reference = at_speed(self._limited(position), speed, self._acceleration, dt)
        return self._power(position, dt)

    def to_place(self, position: float, place: float, speed: float, dt: float) -> float | None:
        """Return the power for the next control period, to come to rest at `place`; None when it rests there."""
        self._reference = to_place(self._limited(position), place, speed, self._acceleration, dt)
        moved = position != self._last
        landing = self._reference == MotionState(place)
        in_place = landing and abs(place - position) <= self._near
        self._still = 0.0 if moved else self._still + dt
        if in_place and self._still > REST_TIME:
            return None
        self.hunting = self.hunting + dt if landing else 0.0
        if not landing:
            self._nudge, self._side, self._gentle = 0.0, 0.0, 1.0
        elif in_place:
            self._nudge = 0.0
        elif moved:
            self._nudge *= EASE
        elif self._still > STUCK_TIME:
            side = math.copysign(1.0, place - position)
            if side * self._side < 0:  # the nudge has moved the shaft across the target
                self._gentle /= 2
            self._side = side
            self._nudge += side * NUDGE * self._gentle * dt
        return self._power(position, dt)

    def _limited(self, position: float) -> MotionState:
        """Return the trajectory, limited to a lead that saturates the power, so that it waits for a slow motor."""
        reference = self._reference
        ahead = reference.position - position
        if abs(ahead) <= self._lag:
            return reference
        return MotionState(position + math.copysign(self._lag, ahead), reference.velocity)

    def _power(self, position: float, dt: float) -> float:
        moved = position - self._last
        self._last = position
        self._speed += (moved / dt - self._speed) * dt / (dt + SMOOTHING)
        error = (self._reference.velocity - self._speed) / self._top
        power = pid_output(
            self._gains,
            error=error,
            integral=(self._reference.position - position) / self._top,
            derivative=(error - self._error) / dt,
            feed_forward=self._reference.velocity / self._top + self._nudge,
        )
        self._error = error
        full = abs(power) >= 1
        self.starved = self.starved + dt if full and not moved else 0.0
        self.runaway = self.runaway + dt if full and moved * power < 0 else 0.0
        return power
