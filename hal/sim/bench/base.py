"""A simulated base with two sets of wheels, whose motion determines its position. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from hal.sim.bench.device import Device
from hal.sim.bench.motor import SimMotor

STEP: Final = 0.005  # seconds; the interval for integrating a changing curvature


@dataclass(frozen=True, slots=True)
class BasePlace:
    """The position of a base in mm, and its heading in degrees to the left; forward is +y at heading 0."""

    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0


def advance(place: BasePlace, left: float, right: float, width: float) -> BasePlace:
    """Return the place after the wheels, `width` mm apart, have rolled `left` and `right` mm along an arc."""
    way, turn = (left + right) / 2, (right - left) / width
    chord = way if turn == 0 else way * math.sin(turn / 2) / (turn / 2)
    middle = math.radians(place.heading) + turn / 2
    return BasePlace(
        place.x - chord * math.sin(middle), place.y + chord * math.cos(middle), place.heading + math.degrees(turn)
    )


class SimBase(Device):
    """A base whose position is a function of the motion of its wheels, independent of how often it is read."""

    kind: ClassVar[str] = "base"

    def __init__(
        self,
        name: str,
        left: Sequence[SimMotor],
        right: Sequence[SimMotor],
        *,
        circumference_mm: float,
        width_mm: float,
    ) -> None:
        super().__init__(name)
        self.left, self.right = tuple(left), tuple(right)
        self.circumference_mm, self.width_mm = circumference_mm, width_mm
        self._place, self._since = BasePlace(), 0.0

    def open(self, t: float) -> None:
        """Connect the base to the shafts of its wheels."""
        self._since = t
        for motor in {*self.left, *self.right}:
            motor.shaft.watchers.append(self)

    def _way(self, motors: Sequence[SimMotor], t: float) -> float:
        return sum(motor.travel(t) for motor in motors) / len(motors) * self.circumference_mm

    def speeds(self, t: float) -> tuple[float, float]:
        """Return the speed in mm/s forward and degrees/s to the left."""
        left, right = (
            sum(motor.mount * motor.shaft.speed(t) for motor in motors) / len(motors) * self.circumference_mm
            for motors in (self.left, self.right)
        )
        return (left + right) / 2, math.degrees((right - left) / self.width_mm)

    def place(self, t: float) -> BasePlace:
        """Return the place at `t`."""
        place, left, right = self._place, self._way(self.left, self._since), self._way(self.right, self._since)
        for moment in self._moments(self._since, t):
            new_left, new_right = self._way(self.left, moment), self._way(self.right, moment)
            place = advance(place, new_left - left, new_right - right, self.width_mm)
            left, right = new_left, new_right
        return place

    def _moments(self, after: float, until: float) -> list[float]:
        """Return the ends of the arcs within (after, until]: short arcs while a speed changes, else one long arc."""
        spins = [part for motor in (*self.left, *self.right) for part in motor.shaft.spins(after, until)]
        cuts = sorted({after, until, *(start for start, _, _ in spins)})
        moments: list[float] = []
        for start, end in itertools.pairwise(cuts):
            calm = max((spin.settled() for begin, stop, spin in spins if begin <= start < stop), default=start)
            # The grid is anchored at the start of the motion, not at the time of reading.
            steps = max(0, math.ceil((min(calm, end) - start) / STEP))
            moments += [moment for i in range(1, steps + 1) if (moment := start + i * STEP) < end]
            moments.append(end)
        return moments

    def settle(self, t: float) -> None:
        """Update the place before the motion of a wheel changes."""
        self._place, self._since = self.place(t), t

    def changed(self, t: float) -> None:
        """Do nothing: the place does not depend on the new motion yet."""

    def close(self, t: float) -> None:
        """Disconnect the base from its wheels."""
        for motor in {*self.left, *self.right}:
            if self in motor.shaft.watchers:
                motor.shaft.watchers.remove(self)
