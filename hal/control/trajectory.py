"""Trapezoidal trajectories, one control period at a time, within limits of speed and acceleration.

The velocity is constant during a period and changes by at most `acceleration * dt` between two. The target speed or
position may change at any time. Units are seconds and those of the caller (revolutions, steps). An infinite
acceleration is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

NOTHING: Final = 1e-9  # a smaller fraction of the distance of a period at full speed counts as a rounding error


@dataclass(frozen=True, slots=True)
class MotionState:
    """A position and a velocity (per second)."""

    position: float
    velocity: float = 0.0


def approach(value: float, target: float, most: float) -> float:
    """Return `value` moved towards `target` by at most `most`."""
    return min(max(target, value - most), value + most)


def braking_speed(way: float, acceleration: float, dt: float) -> float:
    """Return the maximum speed in the next period that still allows coming to rest within `way`; both 0 or more.

    With the speeds v, v - a*dt, v - 2*a*dt ... and n periods of braking, the distance is
    dt * (v*(n+1) - a*dt*n*(n+1)/2), which is solved for v.
    """
    step = acceleration * dt
    n = math.floor((math.sqrt(1 + 8 * way / (step * dt)) - 1) / 2)
    return way / dt if n == 0 else (way / dt + step * n * (n + 1) / 2) / (n + 1)


def at_speed(motion: MotionState, velocity: float, acceleration: float, dt: float) -> MotionState:
    """Return the motion after one period on the way to a velocity."""
    new = approach(motion.velocity, velocity, acceleration * dt)
    return MotionState(motion.position + new * dt, new)


def to_place(motion: MotionState, place: float, speed: float, acceleration: float, dt: float) -> MotionState:
    """Return the motion after one period on the way to rest exactly at `place`, at most at `speed` (above 0).

    It has arrived when the position is `place` and the velocity 0. If the speed is too high to stop in time, it
    overshoots as little as the acceleration allows and comes back.
    """
    way = place - motion.position
    target = math.copysign(min(speed, braking_speed(abs(way), acceleration, dt)), way) if way else 0.0
    new = approach(motion.velocity, target, acceleration * dt)
    remaining = way - new * dt
    return MotionState(place if abs(remaining) <= NOTHING * speed * dt else place - remaining, new)
