"""The shaft of a motor, driven by power, with its planned motion and watchers. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Protocol

from hal.sim.mechanics.motion import Lag, Spin

TAU: Final = 0.05  # seconds: a small geared motor
THERMAL_TAU: Final = 120.0  # seconds
SETTLE_TIME: Final = 8 * TAU  # seconds of coasting until the remaining motion, below 0.01 degrees, is ignored
NEAR: Final = 1 / 720  # revolutions; the precision of a drive, half a degree, which the brake corrects
WINDING_RISE: Final = 40.0  # degrees Celsius above ambient at permanent full power


class Watcher(Protocol):
    """An object that is notified before and after a signal or motion changes."""

    def settle(self, t: float) -> None:
        """Handle everything up to and including `t`, before the change at `t`."""

    def changed(self, t: float) -> None:
        """Handle the change at `t`."""


class Shaft:
    """The position of a shaft (revolutions) as a function of time and the commands so far."""

    def __init__(self, max_rpm: float, now: float) -> None:
        self.max_rpm = max_rpm
        self.power = 0.0
        self.watchers: list[Watcher] = []
        self._plan = [Spin(now, 0.0, 0.0, 0.0, TAU)]
        self._heat = Lag(now, 0.0, 0.0, THERMAL_TAU)

    def _spin(self, t: float) -> Spin:
        for spin in reversed(self._plan):
            if spin.since <= t:
                return spin
        return self._plan[0]

    def position(self, t: float) -> float:
        """Return the position at `t` in revolutions."""
        return self._spin(t).at(t)

    def speed(self, t: float) -> float:
        """Return the speed at `t` in revolutions per second."""
        return self._spin(t).speed_at(t)

    def moving(self, t: float) -> bool:
        """Return whether the shaft turns noticeably or is about to."""
        return abs(self.speed(t)) > 1e-4 or self._spin(t).target != 0

    def driven(self, t: float) -> bool:
        """Return whether the shaft is driven by power; False while it coasts."""
        return self._spin(t).target != 0

    def heat(self, t: float) -> float:
        """Return the temperature of the winding above ambient in degrees Celsius."""
        return self._heat.at(t)

    def spins(self, after: float, until: float) -> Iterator[tuple[float, float, Spin]]:
        """Iterate over the motions within (after, until]: start, end, motion."""
        ends = [spin.since for spin in self._plan[1:]] + [math.inf]
        for index, (spin, end) in enumerate(zip(self._plan, ends, strict=True)):
            start = after if index == 0 else max(after, spin.since)
            if start < min(end, until):
                yield start, min(end, until), spin

    def drive(self, power: float, t: float) -> None:
        """Apply `power` (-1 to 1) from `t`, replacing the planned motion."""
        self.power = power
        self._replan(t, [Spin(t, self.position(t), self.speed(t), power * self.max_rpm / 60, TAU)])
        self._heat = self._heat.towards(t, WINDING_RISE * power * power)

    def brake(self, t: float) -> None:
        """Cut the power and hold the shaft where it is at `t`."""
        self.drive(0.0, t)
        self._replan(t, [Spin(t, self.position(t), 0.0, 0.0, TAU)])

    def heading(self, position: float, t: float) -> int:
        """Return the direction to drive to come to rest at `position`: 1, -1, or 0 to cut the power now."""
        error = position - self._coasts_to(t)
        return 0 if abs(error) < NEAR else int(math.copysign(1, error))

    def stop_at(self, position: float, t: float) -> float | None:
        """Plan to cut the power so that the shaft comes to rest exactly at `position`; return when it does.

        Drive the shaft towards the position first. Returns None without a plan if it would not come to rest there.
        """
        now = self._spin(t)
        cut = now.reaches(position)
        if cut is None or cut < t:
            if self.heading(position, t):
                return None
            cut = t
        rest = cut + SETTLE_TIME
        coast = Spin(cut, now.at(cut), now.speed_at(cut), 0.0, TAU)
        self._replan(t, [now, coast, Spin(rest, position, 0.0, 0.0, TAU)])
        return rest

    def _coasts_to(self, t: float) -> float:
        return self.position(t) + self.speed(t) * TAU

    def _replan(self, t: float, plan: list[Spin]) -> None:
        for watcher in self.watchers:
            watcher.settle(t)
        self._plan = plan
        for watcher in self.watchers:
            watcher.changed(t)
