"""Two rows of wheels: from the motion of the vehicle to that of the wheels, and back.

Lengths in mm, angles in degrees, positive to the left; wheels in revolutions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple


class Sides(NamedTuple):
    """A value for the left wheels and one for the right wheels."""

    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Chassis:
    """`width` between the middles of left and right wheels, `circumference` of a wheel (mm).

    `slip`: how much more the wheels turn than geometry says when the vehicle turns, because they scrub; 1 or more.
    """

    width: float
    circumference: float
    slip: float = 1.0

    def straight(self, distance: float) -> Sides:
        """Revolutions of the wheels for a way forward."""
        return Sides(distance / self.circumference, distance / self.circumference)

    def turn(self, angle: float) -> Sides:
        """Revolutions of the wheels for a turn on the spot."""
        way = math.radians(angle) * self.width / 2 * self.slip / self.circumference
        return Sides(-way, way)

    def arc(self, forward: float, angle: float) -> Sides:
        """Revolutions of the wheels for going `forward` along an arc while turning by `angle`; the same for speeds."""
        straight, turn = self.straight(forward), self.turn(angle)
        return Sides(straight.left + turn.left, straight.right + turn.right)

    def motion(self, wheels: Sides) -> tuple[float, float]:
        """The inverse of `arc`: way forward and angle, or their speeds."""
        forward = (wheels.left + wheels.right) / 2 * self.circumference
        angle = math.degrees((wheels.right - wheels.left) * self.circumference / self.width / self.slip)
        return forward, angle


def mix(forward: float, left_turn: float) -> Sides:
    """Power of the wheels for power forward and turning, scaled down together where one would be above 1."""
    left, right = forward - left_turn, forward + left_turn
    most = max(1.0, abs(left), abs(right))
    return Sides(left / most, right / most)
