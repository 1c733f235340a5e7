"""Differential drive: convert the motion of the vehicle to that of its wheels, and back.

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
    """A chassis: `width` between the centres of left and right wheels and `circumference` of a wheel (mm).

    `slip` is the factor, 1 or more, by which the wheels turn more than by geometry when the vehicle turns.
    """

    width: float
    circumference: float
    slip: float = 1.0

    def straight(self, distance: float) -> Sides:
        """Return the revolutions of the wheels for a distance straight ahead."""
        return Sides(distance / self.circumference, distance / self.circumference)

    def turn(self, angle: float) -> Sides:
        """Return the revolutions of the wheels for a turn on the spot."""
        revolutions = math.radians(angle) * self.width / 2 * self.slip / self.circumference
        return Sides(-revolutions, revolutions)

    def arc(self, forward: float, angle: float) -> Sides:
        """Return the revolutions for an arc of length `forward` that turns by `angle`; also usable for speeds."""
        straight, turn = self.straight(forward), self.turn(angle)
        return Sides(straight.left + turn.left, straight.right + turn.right)

    def motion(self, wheels: Sides) -> tuple[float, float]:
        """Return the forward distance and the angle for wheel revolutions, or their speeds; the inverse of `arc`."""
        forward = (wheels.left + wheels.right) / 2 * self.circumference
        angle = math.degrees((wheels.right - wheels.left) * self.circumference / self.width / self.slip)
        return forward, angle


def mix(forward: float, left_turn: float) -> Sides:
    """Mix forward power and turning power into power for each side; both are scaled down if one would exceed 1."""
    left, right = forward - left_turn, forward + left_turn
    most = max(1.0, abs(left), abs(right))
    return Sides(left / most, right / most)
