"""The course of a motion, and the correction of a velocity, from what was measured. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from hal.control import Gains, pid_output

APPROACH: Final = 2.0  # per second: the speed of the last part of a way is this times what is left
SLOWEST_FORWARD: Final = 20.0  # mm/s
SLOWEST_TURN: Final = 3.0  # degrees/s
NEAR_MM: Final = 5.0  # of a distance that counts as reached
NEAR_DEGREES: Final = 0.5
STRAIGHTEN: Final = 2.0  # degrees/s of turn for each degree off the direction of the straight line
AHEAD: Final = 500.0  # mm: a base off the line heads for the point of the line that is so far ahead
STRAIGHTEN_MOST: Final = 30.0  # degrees/s
PATIENCE: Final = 3.0  # times the time that a motion needs, after which it has failed
SPARE: Final = 5.0  # seconds more


class Measured(NamedTuple):
    """Velocities (mm/s, degrees/s to the left), and the heading in degrees to the left; None without a sensor of it."""

    forward: float
    turn: float
    heading: float | None


class Correction:
    """Corrects a velocity so that the measured one becomes the one that is aimed at.

    The correction for lasting errors is at most `bound`, or the velocity aimed at, so that a base that is held fast
    does not rush off when it is let go.
    """

    def __init__(self, gains: Gains, bound: float) -> None:
        self._gains, self._bound = gains, bound
        self.reset()

    def reset(self) -> None:
        """Forget past errors."""
        self._sum = 0.0
        self._error: float | None = None

    def corrected(self, aim: float, measured: float, seconds: float) -> float:
        """Return the velocity to command, `seconds` after the last one."""
        error = aim - measured
        most = max(self._bound, abs(aim))
        if self._gains.i:
            most_sum = most / self._gains.i
            self._sum = min(max(self._sum + error * seconds, -most_sum), most_sum)
        change = 0.0 if self._error is None else (error - self._error) / seconds
        self._error = error
        return pid_output(
            self._gains,
            error=error,
            integral=self._sum,
            derivative=change,
            feed_forward=aim,
            limit=abs(aim) + 2 * most,
        )


@dataclass(slots=True)
class Course:
    """A motion: velocities to keep, or a distance or an angle, with the speed of the way. Updated by `advance`."""

    forward: float = 0.0  # mm/s, signed; of a distance the speed, above 0
    turn: float = 0.0  # degrees/s
    distance: float | None = None  # mm, signed
    angle: float | None = None  # degrees to the left, signed
    travelled: float = 0.0
    turned: float = 0.0
    offset: float = 0.0  # mm to the left of the straight line
    _last: Measured | None = None

    @classmethod
    def steady(cls, forward: float, turn: float) -> Course:
        """Return the course that keeps velocities."""
        return cls(forward, turn)

    @classmethod
    def straight(cls, distance: float, speed: float) -> Course:
        """Return the course over a distance in the direction of its start."""
        return cls(forward=speed, distance=distance)

    @classmethod
    def spin(cls, angle: float, speed: float) -> Course:
        """Return the course of a turn."""
        return cls(turn=speed, angle=angle)

    @property
    def time_limit(self) -> float:
        """Seconds after which the motion has failed."""
        if self.distance is not None:
            return PATIENCE * abs(self.distance) / self.forward + SPARE
        return PATIENCE * abs(self.angle or 0.0) / self.turn + SPARE

    def advance(self, measured: Measured, seconds: float) -> None:
        """Take into account what was measured `seconds` after the last time."""
        last, self._last = self._last, measured
        if last is None:
            return
        way = (last.forward + measured.forward) / 2 * seconds
        self.travelled += way
        self.offset += way * math.sin(math.radians(self.turned))
        if last.heading is not None and measured.heading is not None:
            self.turned += math.remainder(measured.heading - last.heading, 360.0)
        else:
            self.turned += (last.turn + measured.turn) / 2 * seconds

    @property
    def _remaining(self) -> float:
        return self.distance - self.travelled if self.distance is not None else (self.angle or 0.0) - self.turned

    @property
    def reached(self) -> bool:
        """Whether the end is reached."""
        aim = self.distance if self.distance is not None else self.angle
        if aim is None:
            return False
        near = NEAR_MM if self.distance is not None else NEAR_DEGREES
        return self._remaining * math.copysign(1.0, aim) <= min(near, abs(aim) / 10)

    @property
    def left(self) -> str:
        """What is left, for people."""
        return f"{self._remaining:.0f} mm" if self.distance is not None else f"{self._remaining:.1f} degrees"

    @property
    def velocity(self) -> tuple[float, float]:
        """The velocity to aim at now: mm/s forward and degrees/s to the left."""
        if self.distance is not None:
            off = self.turned + math.degrees(math.atan2(math.copysign(self.offset, self.offset * self.distance), AHEAD))
            straighten = min(max(-STRAIGHTEN * off, -STRAIGHTEN_MOST), STRAIGHTEN_MOST)
            return _slowed(self._remaining, self.forward, SLOWEST_FORWARD), straighten
        if self.angle is not None:
            return 0.0, _slowed(self._remaining, self.turn, SLOWEST_TURN)
        return self.forward, self.turn


def _slowed(remaining: float, speed: float, slowest: float) -> float:
    """Return the signed speed at a remaining distance."""
    return math.copysign(min(speed, max(APPROACH * abs(remaining), slowest)), remaining)
