"""Motions of shafts and axes between two commands, as pure functions of time.

All times are seconds of Trio's clock. Motions are immutable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

SETTLED: Final = 16.0  # time constants after which an exponential counts as settled (e**-16 is about 1e-7)


@dataclass(frozen=True, slots=True)
class Lag:
    """A first-order approach: from `value` at `since` to `target` with the time constant `tau`."""

    since: float
    value: float
    target: float
    tau: float

    def at(self, t: float) -> float:
        """Return the value at `t`, which must not be before `since`."""
        return self.target + (self.value - self.target) * math.exp(-(t - self.since) / self.tau)

    def towards(self, t: float, target: float) -> Lag:
        """Return the motion with another target from `t`."""
        return Lag(t, self.at(t), target, self.tau)


@dataclass(frozen=True, slots=True)
class Spin:
    """A rotation whose speed (revolutions per second) approaches `target` with the time constant `tau`."""

    since: float
    position: float
    speed: float
    target: float
    tau: float

    def speed_at(self, t: float) -> float:
        """Return the speed at `t`."""
        return self.target + (self.speed - self.target) * math.exp(-(t - self.since) / self.tau)

    def at(self, t: float) -> float:
        """Return the position at `t`, the integral of the speed in closed form."""
        dt = t - self.since
        return self.position + self.target * dt + (self.speed - self.target) * self.tau * -math.expm1(-dt / self.tau)

    def turn(self) -> float | None:
        """Return the time when it reverses, if it does."""
        if self.speed * self.target >= 0:
            return None
        return self.since - self.tau * math.log(self.target / (self.target - self.speed))

    def reaches(self, position: float) -> float | None:
        """Return when power must be cut to coast exactly to `position`; None if that is not or no longer possible.

        Coasting from t ends at position(t) + speed(t) * tau, which is linear in t for this motion.
        """
        if self.target == 0:
            return None
        dt = (position - self.position - self.speed * self.tau) / self.target
        return self.since + dt if dt >= 0 else None

    def settled(self) -> float:
        """Return the time from which the speed practically equals its target."""
        return self.since if self.speed == self.target else self.since + SETTLED * self.tau


@dataclass(frozen=True, slots=True)
class Glide:
    """A move at constant speed from one value to another, followed by rest."""

    since: float
    start: float
    end: float
    speed: float  # per second, positive

    def at(self, t: float) -> float:
        """Return the value at `t`."""
        way = self.end - self.start
        distance = self.speed * (t - self.since)
        return self.end if distance >= abs(way) else self.start + math.copysign(distance, way)

    @property
    def arrival(self) -> float:
        """The time when it comes to rest."""
        return self.since + abs(self.end - self.start) / self.speed

    @classmethod
    def rest(cls, value: float, t: float = 0.0) -> Glide:
        """Return a motion at rest at `value`."""
        return cls(t, value, value, 1.0)
