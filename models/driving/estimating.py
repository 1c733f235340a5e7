"""Where a base is, from measured positions, headings and its speed. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from models.driving.following import Place
from models.driving.plane import Point

TRUST: Final = 0.25  # share of a measured position in the estimate
JUMP: Final = 10.0  # m beyond what the base can have driven: such a position is not believed
SPEEDING: Final = 3.0  # times the speed that is commanded


@dataclass(slots=True)
class Estimate:
    """The estimated place, smoothed between positions by heading and speed."""

    place: Place

    def drive(self, heading: float, speed: float, seconds: float) -> None:
        """Move the estimate by what the base has driven at `speed` (m/s) since the last call."""
        angle, point = math.radians(heading), self.place.point
        way = speed * seconds
        self.place = Place(Point(point.x + way * math.sin(angle), point.y + way * math.cos(angle)), heading)

    def correct(self, point: Point, since: float, speed: float) -> bool:
        """Take a measured position into account, `since` seconds after the last; return whether it is believed."""
        own = self.place.point
        if own.distance(point) > JUMP + SPEEDING * speed * since:
            return False
        corrected = Point(own.x + TRUST * (point.x - own.x), own.y + TRUST * (point.y - own.y))
        self.place = Place(corrected, self.place.heading)
        return True
