"""Trapezoidal trajectories, a beat at a time: where something should be and how fast, within speed and acceleration.

The velocity is constant during a beat and changes by no more than `acceleration * dt` between two. A trajectory may be
given another speed or another goal at any beat; it never has to begin anew. Units are the caller's (revolutions, steps)
and seconds. An infinite acceleration is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

NOTHING: Final = 1e-9  # share of a beat's way at full speed below which a rest of the way is rounding


@dataclass(frozen=True, slots=True)
class Motion:
    """Where something is and how fast it goes there (per second)."""

    position: float
    velocity: float = 0.0


def approach(value: float, target: float, most: float) -> float:
    """`value` moved towards `target` by no more than `most`."""
    return min(max(target, value - most), value + most)


def braking_speed(way: float, acceleration: float, dt: float) -> float:
    """The greatest speed during the next beat from which one still comes to rest within `way`, both 0 or more.

    At v, v - a*dt, v - 2*a*dt ... the way is dt * (v*(n+1) - a*dt*n*(n+1)/2) with n beats of braking; solved for v.
    """
    step = acceleration * dt
    n = math.floor((math.sqrt(1 + 8 * way / (step * dt)) - 1) / 2)
    return way / dt if n == 0 else (way / dt + step * n * (n + 1) / 2) / (n + 1)


def at_speed(motion: Motion, velocity: float, acceleration: float, dt: float) -> Motion:
    """One beat later on the way to a velocity."""
    new = approach(motion.velocity, velocity, acceleration * dt)
    return Motion(motion.position + new * dt, new)


def to_place(motion: Motion, place: float, speed: float, acceleration: float, dt: float) -> Motion:
    """One beat later on the way to rest exactly at `place`, no faster than `speed` (above 0).

    It has arrived when position is `place` and velocity 0. From a speed too high to stop in time it goes too far by as
    little as the acceleration allows and comes back.
    """
    way = place - motion.position
    wanted = math.copysign(min(speed, braking_speed(abs(way), acceleration, dt)), way) if way else 0.0
    new = approach(motion.velocity, wanted, acceleration * dt)
    ahead = way - new * dt
    return Motion(place if abs(ahead) <= NOTHING * speed * dt else place - ahead, new)
