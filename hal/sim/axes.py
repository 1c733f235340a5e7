"""Simulated axes: servos, arms, gantries, grippers; each axis glides to where it is sent and stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hal.sim.device import Device
from hal.sim.motion import Glide

HOLDING: Final = 0.02  # amperes of an axis at rest
MOVING: Final = 0.4  # amperes of an axis that moves


class SimAxes(Device):
    """One or more axes, in the units of their owner. `kind` says what it looks like."""

    def __init__(self, name: str, kind: str, values: Sequence[float]) -> None:
        super().__init__(name)
        self.look = kind
        self._glides = [Glide.rest(value) for value in values]

    def values(self, t: float) -> list[float]:
        """Where each axis is."""
        return [glide.at(t) for glide in self._glides]

    def send(self, targets: Sequence[float], speeds: Sequence[float], t: float) -> float:
        """Send each axis to its target at its speed (per second); return when the last one rests."""
        self._glides = [
            Glide(t, value, target, speed) for value, target, speed in zip(self.values(t), targets, speeds, strict=True)
        ]
        return max(glide.arrival for glide in self._glides)

    def send_together(self, targets: Sequence[float], speeds: Sequence[float], t: float) -> float:
        """As `send`, but slowed down so that all axes arrive at one time."""
        ways = [abs(target - value) for target, value in zip(targets, self.values(t), strict=True)]
        duration = max(way / speed for way, speed in zip(ways, speeds, strict=True))
        return self.send(targets, [way / duration if way else 1.0 for way in ways], t) if duration else t

    def halt(self, t: float) -> None:
        """Stop every axis where it is."""
        self._glides = [Glide.rest(value, t) for value in self.values(t)]

    def moving(self, t: float) -> bool:
        """Whether an axis is on its way."""
        return any(t < glide.arrival for glide in self._glides)

    def current(self, t: float) -> float:
        """More while it moves."""
        return sum(MOVING if t < glide.arrival else HOLDING for glide in self._glides)


class SimControl(Device):
    """Something a person or a program sets: a switch's position, a button's pushes."""

    def __init__(self, name: str, kind: str, value: float = 0.0) -> None:
        super().__init__(name)
        self.look = kind
        self.value = value
