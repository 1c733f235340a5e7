"""Following a way: velocities from where a base is, by pure pursuit. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from models.driving.plane import Point, bearing, turn_between

SHORTEST_LOOK: Final = 0.6  # m: a base heads for the point of the way that is so far ahead
LOOK_TIME: Final = 2.0  # s at the current speed, by which it looks farther ahead
ARRIVED: Final = 0.25  # m
FACED: Final = 3.0  # degrees of a final heading that count as reached
TURN_FIRST: Final = 50.0  # degrees off the way: it turns on the spot
SLOW_DOWN: Final = 0.6  # per second: the speed of the last part is this times what is left
SLOWEST: Final = 0.06  # m/s
TURN_GAIN: Final = 1.2  # degrees/s for each degree


class Place(NamedTuple):
    """Where a base is, and its heading in degrees clockwise from north."""

    point: Point
    heading: float


class Velocity(NamedTuple):
    """A velocity: m/s forward, and degrees/s to the left."""

    forward: float
    turn: float


@dataclass(slots=True)
class Follower:
    """Follows a way. `speed` in m/s and `turn` in degrees/s are the highest; `heading` is that of the end."""

    way: Sequence[Point]
    speed: float
    turn: float
    heading: float | None = None
    travelled: float = 0.0  # m along the way
    off: float = 0.0  # m from the way
    arrived: bool = False
    _turning: bool = False

    @property
    def length(self) -> float:
        """The length of the way in m."""
        return sum(first.distance(second) for first, second in itertools.pairwise(self.way))

    @property
    def left(self) -> float:
        """The length in m of the way that is left."""
        return max(0.0, self.length - self.travelled)

    @property
    def seconds(self) -> float:
        """The time that the way needs at full speed, with its turns."""
        turns = 180.0 * len(self.way)
        return self.length / self.speed + turns / self.turn

    def step(self, place: Place) -> Velocity | None:
        """Return the velocity at a place; None at the end."""
        self._locate(place.point)
        if place.point.distance(self.way[-1]) <= ARRIVED or self.left <= 0.05:
            self.arrived = True
        if self.arrived:
            if self.heading is None:
                return None
            error = turn_between(place.heading, self.heading)
            return None if abs(error) <= FACED else Velocity(0.0, self._spin(error))
        look = SHORTEST_LOOK + LOOK_TIME * self.speed
        target = self._at(self.travelled + look)
        error = turn_between(place.heading, bearing(place.point, target))
        self._turning = abs(error) > (TURN_FIRST / 3 if self._turning else TURN_FIRST)
        if self._turning:
            return Velocity(0.0, self._spin(error))
        angle = math.radians(error)
        forward = min(self.speed, max(SLOWEST, SLOW_DOWN * self.left)) * max(0.2, math.cos(angle))
        distance = max(SHORTEST_LOOK, place.point.distance(target))
        turn = -math.degrees(2 * forward * math.sin(angle) / distance)
        if abs(turn) > self.turn:
            forward *= self.turn / abs(turn)
            turn = math.copysign(self.turn, turn)
        return Velocity(forward, turn)

    def _spin(self, error: float) -> float:
        return -min(max(TURN_GAIN * error, -self.turn), self.turn)

    def _locate(self, point: Point) -> None:
        """Find the nearest point of the way ahead, not farther than a base can have come."""
        start, nearest = 0.0, math.inf
        window = (self.travelled - 1.0, self.travelled + 2.0 + LOOK_TIME * self.speed)
        for first, second in itertools.pairwise(self.way):
            length = first.distance(second)
            if start + length >= window[0] and start <= window[1] and length:
                share = ((point.x - first.x) * (second.x - first.x) + (point.y - first.y) * (second.y - first.y)) / (
                    length * length
                )
                low, high = (window[0] - start) / length, (window[1] - start) / length
                share = min(max(share, 0.0, low), 1.0, high)
                at = Point(first.x + share * (second.x - first.x), first.y + share * (second.y - first.y))
                if (distance := point.distance(at)) < nearest:
                    nearest, self.travelled = distance, start + share * length
            start += length
        if math.isfinite(nearest):
            self.off = nearest

    def _at(self, travelled: float) -> Point:
        for first, second in itertools.pairwise(self.way):
            length = first.distance(second)
            if travelled <= length and length:
                share = travelled / length
                return Point(first.x + share * (second.x - first.x), first.y + share * (second.y - first.y))
            travelled -= length
        return self.way[-1]
