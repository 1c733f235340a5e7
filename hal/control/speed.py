"""Control of a motor's speed and position by its encoder: a trajectory is followed by feed-forward and PID.

Positions are revolutions, speeds revolutions per second, power is -1 to 1. The error of the PID is the speed error as a
share of the top speed. Its integral is not summed up but measured: it is how far the shaft is behind the trajectory, so
that a speed is kept on average to the tick, and a place is reached within a tick.
"""

from __future__ import annotations

import math
from typing import Final

from hal.control.pid import Gains, pid
from hal.control.trajectory import Motion, at_speed, to_place

# For a first-order motor with a time constant of 0.02 to 0.3 s these give damping between 0.6 and 2.
DEFAULT_GAINS: Final = Gains(p=0.5, i=5.0)
SMOOTHING: Final = 0.04  # seconds: time constant of the measured speed
NEAR: Final = 1 / 720  # revolutions: half a degree, or half a tick where ticks are coarser, is there
REST_TIME: Final = 0.2  # seconds without a tick at the place: then it has come to rest
STUCK_TIME: Final = 0.1  # seconds without a tick short of the place: then friction holds it
NUDGE: Final = 0.5  # power per second that is added while friction holds the shaft short of its place
EASE: Final = 0.9  # of that power is left after each beat in which the shaft moved
FREE_LAG: Final = 1.0  # seconds at top speed that the trajectory may be ahead if no integral gain says it


class SpeedControl:
    """One motor. `step` once a beat, with the encoder's position.

    `starved` is for how many seconds full power has brought not one tick, `runaway` for how many the shaft has turned
    against full power, `hunting` for how many it has been about to rest at its place.
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
        """Start from here, at rest."""
        self.starved = self.runaway = self.hunting = 0.0
        self._reference = Motion(position)
        self._last = position
        self._speed = self._error = self._nudge = 0.0
        self._still = 0.0  # seconds without a tick
        self._side = 0.0  # on which the place lay when it was nudged last
        self._gentle = 1.0  # share of the nudge that is left after it went too far

    def nearest(self, place: float) -> float:
        """The tick next to `place`: where the shaft can be seen to be."""
        return round(place * self._ticks) / self._ticks

    def to_speed(self, position: float, speed: float, dt: float) -> float:
        """Power for the next beat of `dt` seconds on the way to `speed`."""
        self._nudge = self.hunting = 0.0
        self._reference = at_speed(self._held(position), speed, self._acceleration, dt)
        return self._power(position, dt)

    def to_place(self, position: float, place: float, speed: float, dt: float) -> float | None:
        """Power for the next beat on the way to rest at `place`; None when it rests there."""
        self._reference = to_place(self._held(position), place, speed, self._acceleration, dt)
        moved = position != self._last
        landing = self._reference == Motion(place)
        there = landing and abs(place - position) <= self._near
        self._still = 0.0 if moved else self._still + dt
        if there and self._still > REST_TIME:
            return None
        self.hunting = self.hunting + dt if landing else 0.0
        if not landing:
            self._nudge, self._side, self._gentle = 0.0, 0.0, 1.0
        elif there:
            self._nudge = 0.0
        elif moved:
            self._nudge *= EASE
        elif self._still > STUCK_TIME:
            side = math.copysign(1.0, place - position)
            if side * self._side < 0:  # the last ones were too strong
                self._gentle /= 2
            self._side = side
            self._nudge += side * NUDGE * self._gentle * dt
        return self._power(position, dt)

    def _held(self, position: float) -> Motion:
        """The trajectory, not farther ahead of the shaft than full power is worth: it waits for a motor that lags."""
        reference = self._reference
        ahead = reference.position - position
        if abs(ahead) <= self._lag:
            return reference
        return Motion(position + math.copysign(self._lag, ahead), reference.velocity)

    def _power(self, position: float, dt: float) -> float:
        moved = position - self._last
        self._last = position
        self._speed += (moved / dt - self._speed) * dt / (dt + SMOOTHING)
        error = (self._reference.velocity - self._speed) / self._top
        power = pid(
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
