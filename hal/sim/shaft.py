"""A shaft: a motor's body, driven by power, with what has been planned for it and who watches it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Protocol

from hal.sim.motion import Lag, Spin

TAU: Final = 0.05  # seconds: a small geared motor
THERMAL_TAU: Final = 120.0  # seconds
SETTLE_TIME: Final = 8 * TAU  # seconds of coasting after which the last hundredth of a degree is not worth waiting for
NEAR: Final = 1 / 720  # revolutions: half a degree is as exactly as a drive can aim; the brake does the rest
WINDING_RISE: Final = 40.0  # degrees Celsius above ambient at full power for ever


class Watcher(Protocol):
    """Something that accounts for what a changing thing did."""

    def settle(self, t: float) -> None:
        """It is about to change at `t`: account for everything until and including then."""

    def changed(self, t: float) -> None:
        """It has changed at `t`."""


class Shaft:
    """Position (revolutions) as a function of time, between and through the commands given so far."""

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
        """Revolutions at `t`."""
        return self._spin(t).at(t)

    def speed(self, t: float) -> float:
        """Revolutions per second at `t`."""
        return self._spin(t).speed_at(t)

    def moving(self, t: float) -> bool:
        """Whether it turns noticeably, or is about to."""
        return abs(self.speed(t)) > 1e-4 or self._spin(t).target != 0

    def driven(self, t: float) -> bool:
        """Whether power keeps it turning; False while it coasts."""
        return self._spin(t).target != 0

    def heat(self, t: float) -> float:
        """Degrees Celsius of the winding above ambient."""
        return self._heat.at(t)

    def spins(self, after: float, until: float) -> Iterator[tuple[float, float, Spin]]:
        """The motions within (after, until]: from, to, what."""
        ends = [spin.since for spin in self._plan[1:]] + [math.inf]
        for index, (spin, end) in enumerate(zip(self._plan, ends, strict=True)):
            start = after if index == 0 else max(after, spin.since)
            if start < min(end, until):
                yield start, min(end, until), spin

    def drive(self, power: float, t: float) -> None:
        """Apply `power` (-1 to 1) from `t` on; forget what was planned."""
        self.power = power
        self._replan(t, [Spin(t, self.position(t), self.speed(t), power * self.max_rpm / 60, TAU)])
        self._heat = self._heat.towards(t, WINDING_RISE * power * power)

    def heading(self, position: float, t: float) -> int:
        """Which way to drive to come to rest at `position`: 1, -1, or 0 if cutting the power now is right."""
        miss = position - self._coasts_to(t)
        return 0 if abs(miss) < NEAR else int(math.copysign(1, miss))

    def stop_at(self, position: float, t: float) -> float | None:
        """Cut the power in time to come to rest exactly at `position`; return when it rests there.

        Drive it towards the position first. None, and nothing planned, if it would not come to rest there.
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
