"""Motions as pure functions of time: what a shaft or an axis does between two commands.

All times are seconds of the run's clock. A motion is immutable, so asking it often changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

SETTLED: Final = 16.0  # time constants after which an exponential is taken as over (e**-16 is about 1e-7)


@dataclass(frozen=True, slots=True)
class Lag:
    """A first-order approach: at `since` the value is `value`, and it tends to `target` with time constant `tau`."""

    since: float
    value: float
    target: float
    tau: float

    def at(self, t: float) -> float:
        """The value at `t`, not before `since`."""
        return self.target + (self.value - self.target) * math.exp(-(t - self.since) / self.tau)

    def towards(self, t: float, target: float) -> Lag:
        """The same quantity, heading elsewhere from `t` on."""
        return Lag(t, self.at(t), target, self.tau)


@dataclass(frozen=True, slots=True)
class Spin:
    """A shaft whose speed (revolutions per second) approaches `target` with time constant `tau`."""

    since: float
    position: float
    speed: float
    target: float
    tau: float

    def speed_at(self, t: float) -> float:
        """Speed at `t`."""
        return self.target + (self.speed - self.target) * math.exp(-(t - self.since) / self.tau)

    def at(self, t: float) -> float:
        """Position at `t`: the integral of the speed, in closed form."""
        dt = t - self.since
        return self.position + self.target * dt + (self.speed - self.target) * self.tau * -math.expm1(-dt / self.tau)

    def turn(self) -> float | None:
        """When it reverses, if it ever does."""
        if self.speed * self.target >= 0:
            return None
        return self.since - self.tau * math.log(self.target / (self.target - self.speed))

    def reaches(self, position: float) -> float | None:
        """From when on coasting (no power) would end exactly at `position`; None if that never or no longer happens.

        Coasting from t ends at position(t) + speed(t) * tau, which for this motion is linear in t.
        """
        if self.target == 0:
            return None
        dt = (position - self.position - self.speed * self.tau) / self.target
        return self.since + dt if dt >= 0 else None

    def settled(self) -> float:
        """From when on the speed is its target for every practical purpose."""
        return self.since if self.speed == self.target else self.since + SETTLED * self.tau


@dataclass(frozen=True, slots=True)
class Glide:
    """A constant-speed move from one value to another, then rest."""

    since: float
    start: float
    end: float
    speed: float  # per second, positive

    def at(self, t: float) -> float:
        """The value at `t`."""
        way = self.end - self.start
        done = self.speed * (t - self.since)
        return self.end if done >= abs(way) else self.start + math.copysign(done, way)

    @property
    def arrival(self) -> float:
        """When it has come to rest."""
        return self.since + abs(self.end - self.start) / self.speed

    @classmethod
    def rest(cls, value: float, t: float = 0.0) -> Glide:
        """At rest at `value`."""
        return cls(t, value, value, 1.0)
