"""Simulated axes of servos, arms, gantries and grippers, which move to their targets at constant speed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hal.sim.bench.device import Device
from hal.sim.mechanics.motion import Glide

HOLDING: Final = 0.02  # amperes of an axis at rest
MOVING: Final = 0.4  # amperes of a moving axis


class SimAxes(Device):
    """One or more axes, in the units of their owner. `kind` is the type that is displayed."""

    def __init__(self, name: str, kind: str, values: Sequence[float]) -> None:
        super().__init__(name)
        self.look = kind
        self._glides = [Glide.rest(value) for value in values]

    def values(self, t: float) -> list[float]:
        """Return the position of each axis."""
        return [glide.at(t) for glide in self._glides]

    def send(self, targets: Sequence[float], speeds: Sequence[float], t: float) -> float:
        """Move each axis to its target at its speed (per second); return the time when the last one arrives."""
        self._glides = [
            Glide(t, value, target, speed) for value, target, speed in zip(self.values(t), targets, speeds, strict=True)
        ]
        return max(glide.arrival for glide in self._glides)

    def send_together(self, targets: Sequence[float], speeds: Sequence[float], t: float) -> float:
        """Move the axes like `send`, but slowed down so that all arrive at the same time."""
        ways = [abs(target - value) for target, value in zip(targets, self.values(t), strict=True)]
        duration = max(way / speed for way, speed in zip(ways, speeds, strict=True))
        return self.send(targets, [way / duration if way else 1.0 for way in ways], t) if duration else t

    def halt(self, t: float) -> None:
        """Stop all axes at their current positions."""
        self._glides = [Glide.rest(value, t) for value in self.values(t)]

    def moving(self, t: float) -> bool:
        """Return whether any axis is moving."""
        return any(t < glide.arrival for glide in self._glides)

    def current(self, t: float) -> float:
        """Return the current in amperes, which is higher for moving axes."""
        return sum(MOVING if t < glide.arrival else HOLDING for glide in self._glides)


class SimControl(Device):
    """A control that a person or a program sets: the position of a switch, the pushes of a button."""

    def __init__(self, name: str, kind: str, value: float = 0.0) -> None:
        super().__init__(name)
        self.look = kind
        self.value = value
