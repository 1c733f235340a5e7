"""Pins and the wires between them.

Each pin may drive a signal; wired pins carry the signal of whoever drove last. A net that nobody drives has the level
of its pull resistor, or low; a short circuit wins over everybody. Whoever depends on a pin watches it and
is told before and after its signal changes, so nothing has to be polled and nothing runs while nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hal.sim.shaft import Watcher
from hal.sim.signal import HIGH, LOW, Constant, Signal


@dataclass(eq=False, slots=True)
class Pin:
    """A pin of a board: what it drives, if it is an output, and who watches it.

    `pull` is the level of its resistor, if it has one; `short` what it is shorted to.
    """

    board: str
    name: str
    drive: Signal | None = None
    pull: Constant | None = None
    short: Constant | None = None
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
        """What `pin` carries: a short circuit, else the signal of the last to drive its net, else its pull, else low.

        A pull-up wins over a pull-down.
        """
        last: Pin | None = None
        pull = LOW
        for other in self.net(pin):
            if other.short is not None:
                return other.short
            if other.drive is not None and (last is None or other.turn > last.turn):
                last = other
            if other.pull is HIGH:
                pull = HIGH
        return pull if last is None or last.drive is None else last.drive

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

    def set_pull(self, pin: Pin, pull: Constant | None, t: float) -> None:
        """Put a resistor to high or low on `pin`, or take it off with None."""
        net = self.net(pin)
        self.settle(net, t)
        pin.pull = pull
        self.changed(net, t)

    def set_short(self, pin: Pin, level: Constant | None, t: float) -> None:
        """Short `pin` to a level whatever anybody drives, or mend it with None."""
        net = self.net(pin)
        self.settle(net, t)
        pin.short = level
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
