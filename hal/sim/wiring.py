"""Pins and the wires between them.

Each pin may drive a signal; wired pins carry the signal of whoever drove last. Whoever depends on a pin watches it and
is told before and after its signal changes, so nothing has to be polled and nothing runs while nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hal.sim.shaft import Watcher
from hal.sim.signal import LOW, Signal


@dataclass(eq=False, slots=True)
class Pin:
    """A pin of a board: what it drives, if it is an output, and who watches it."""

    board: str
    name: str
    drive: Signal | None = None
    turn: int = 0  # the order in which pins were driven
    watchers: list[Watcher] = field(default_factory=list)
    wires: set[Pin] = field(default_factory=set)

    def __repr__(self) -> str:
        return f"{self.board}:{self.name}"


class Wiring:
    """All pins of the bench. A pin exists as soon as it is named."""

    def __init__(self) -> None:
        self._pins: dict[tuple[str, str], Pin] = {}
        self._turn = 0

    def pin(self, board: str, name: str) -> Pin:
        """The pin called `name` on `board`."""
        return self._pins.setdefault((board, name), Pin(board, name))

    def pins(self, board: str) -> list[Pin]:
        """The pins of `board` that have been named so far."""
        return [pin for pin in self._pins.values() if pin.board == board]

    def net(self, pin: Pin) -> set[Pin]:
        """All pins connected to `pin`, itself included."""
        found, todo = {pin}, [pin]
        while todo:
            new = todo.pop().wires - found
            found |= new
            todo += new
        return found

    def signal(self, pin: Pin) -> Signal:
        """What `pin` carries: the signal of the last to drive its net; low if nobody does."""
        driver = max((p for p in self.net(pin) if p.drive is not None), key=lambda p: p.turn, default=None)
        return LOW if driver is None or driver.drive is None else driver.drive

    def driven(self, pin: Pin) -> bool:
        """Whether anybody drives the net of `pin`."""
        return any(p.drive is not None for p in self.net(pin))

    def set_drive(self, pin: Pin, signal: Signal | None, t: float) -> None:
        """Let `pin` drive `signal` from `t` on, or let go with None."""
        net = self.net(pin)
        self.settle(net, t)
        self._turn += 1
        pin.drive, pin.turn = signal, self._turn
        self.changed(net, t)

    def connect(self, one: Pin, other: Pin, t: float) -> None:
        """Put a wire between two pins."""
        net = self.net(one) | self.net(other)
        self.settle(net, t)
        one.wires.add(other)
        other.wires.add(one)
        self.changed(net, t)

    def cut(self, one: Pin, other: Pin, t: float) -> None:
        """Take the wire between two pins away."""
        net = self.net(one)
        self.settle(net, t)
        one.wires.discard(other)
        other.wires.discard(one)
        self.changed(net, t)

    def settle(self, pins: set[Pin], t: float) -> None:
        """Tell the watchers of `pins` that they are about to change."""
        for watcher in [watcher for pin in pins for watcher in pin.watchers]:
            watcher.settle(t)

    def changed(self, pins: set[Pin], t: float) -> None:
        """Tell the watchers of `pins` that they have changed."""
        for watcher in [watcher for pin in pins for watcher in pin.watchers]:
            watcher.changed(t)
