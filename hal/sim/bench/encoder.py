"""A simulated incremental encoder: a disc on a shaft, the pins that it drives, and the counter that reads them."""

from __future__ import annotations

from typing import ClassVar, Final

from hal.sim.bench.device import Device
from hal.sim.gpio.wiring import Pin, Wiring
from hal.sim.mechanics.phase import Phase, ticks_at
from hal.sim.mechanics.shaft import Shaft

# Quadrature by (A, B): the position within a cycle of four ticks.
_CYCLE: Final = {(False, False): 0, (True, False): 1, (True, True): 2, (False, True): 3}


class _Disc:
    """A disc on a shaft, whose sensor drives pins that are wired to those of the counter."""

    def __init__(self, wiring: Wiring, name: str, shaft: Shaft, ticks_per_rotation: float, pins: list[Pin]) -> None:
        self.shaft = shaft
        self.ticks_per_rotation = ticks_per_rotation
        self._wiring = wiring
        tracks = [wiring.pin(f"encoder/{name}", track) for track in ("a", "b")]
        self._wires = list(zip(tracks, pins, (1, 0), strict=False))

    def open(self, t: float) -> None:
        for track, pin, parity in self._wires:
            self._wiring.set_drive(track, Phase(self.shaft, self.ticks_per_rotation, parity), t)
            self._wiring.connect(track, pin, t)
        self.shaft.watchers.append(self)

    def settle(self, t: float) -> None:
        for track, _, _ in self._wires:
            self._wiring.settle(self._wiring.net(track), t)

    def changed(self, t: float) -> None:
        for track, _, _ in self._wires:
            self._wiring.changed(self._wiring.net(track), t)

    def close(self, t: float) -> None:
        if self in self.shaft.watchers:
            self.shaft.watchers.remove(self)
        for track, pin, _ in self._wires:
            self._wiring.cut(track, pin, t)
            self._wiring.set_drive(track, None, t)


class SimEncoder(Device):
    """Counts the ticks of its disc, or without a disc, the edges on its pins.

    With two pins the count has a direction; with one, each rising edge counts up; without pins the disc itself is read.
    """

    kind: ClassVar[str] = "encoder"

    def __init__(self, name: str, wiring: Wiring, pins: list[Pin]) -> None:
        super().__init__(name)
        self._wiring = wiring
        self._pins = pins
        self._disc: _Disc | None = None
        self._count = 0
        self._since = 0.0  # when the count was last settled
        self._start = 0  # ticks of the disc at that time
        self._levels: tuple[bool, ...] = ()

    def open(self, t: float) -> None:
        """Watch the pins."""
        self._settle_at(t)
        for pin in self._pins:
            pin.watchers.append(self)

    def attach(self, shaft: Shaft, ticks_per_rotation: float, t: float) -> None:
        """Mount a disc on `shaft`."""
        self.detach(t)
        count = self.ticks(t)
        disc = _Disc(self._wiring, self.name, shaft, ticks_per_rotation, self._pins)
        disc.open(t)
        self._disc = disc
        self._count = count
        self._settle_at(t)

    def detach(self, t: float) -> None:
        """Remove the disc from its shaft, if there is one; the count is kept."""
        if self._disc is None:
            return
        count = self.ticks(t)
        disc, self._disc = self._disc, None
        disc.close(t)
        self._count = count
        self._settle_at(t)

    @property
    def ticks_per_rotation(self) -> float | None:
        """The ticks per rotation of the disc; None without a disc."""
        return None if self._disc is None else self._disc.ticks_per_rotation

    def _disc_ticks(self, t: float) -> int:
        return 0 if self._disc is None else ticks_at(self._disc.shaft, self._disc.ticks_per_rotation, t)

    def ticks(self, t: float) -> int:
        """Return the count at `t`."""
        if self._disc is not None:
            return self._count + self._disc_ticks(t) - self._start
        if len(self._pins) == 1:
            return self._count + self._wiring.signal(self._pins[0]).edges(self._since, t)[0]
        return self._count

    def reset(self, t: float) -> None:
        """Reset the count to 0."""
        self.settle(t)
        self._count = 0

    def _settle_at(self, t: float) -> None:
        self._since, self._start = t, self._disc_ticks(t)
        self._levels = tuple(self._wiring.signal(pin).level(t) for pin in self._pins)

    def settle(self, t: float) -> None:
        """Store the count at `t`."""
        self._count = self.ticks(t)
        self._settle_at(t)

    def changed(self, t: float) -> None:
        """Decode a step of the pins, unless a disc drives them."""
        before = self._levels
        self._settle_at(t)
        levels = self._levels
        if self._disc is not None or levels == before:
            return
        if len(levels) == 1:
            self._count += levels[0] and not before[0]
        elif len(levels) == 2:
            step = (_CYCLE[levels[0], levels[1]] - _CYCLE[before[0], before[1]]) % 4
            self._count += {0: 0, 1: 1, 2: 0, 3: -1}[step]

    def current(self, t: float) -> float:
        """Return the current of the light barrier in amperes."""
        return 0.02

    def close(self, t: float) -> None:
        """Disconnect from the shaft and the pins."""
        self.detach(t)
        for pin in self._pins:
            pin.watchers.remove(self)
