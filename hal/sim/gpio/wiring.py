"""Pins and the wires between them. Pure.

Each pin may drive a signal; connected pins form a net, which carries the signal that was driven last. A net that is not
driven has the level of its pull resistor, or low; a short circuit takes precedence. Objects that depend on a pin watch
it and are notified before and after its signal changes, so that nothing is polled.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hal.sim.gpio.signal import HIGH, LOW, Constant, Signal
from hal.sim.mechanics.shaft import Watcher


@dataclass(eq=False, slots=True)
class Pin:
    """A pin of a board: the signal that it drives, if it is an output, and its watchers.

    `pull` is the level of its resistor, if any; `short` is the level to which it is shorted.
    """

    board: str
    name: str
    drive: Signal | None = None
    pull: Constant | None = None
    short: Constant | None = None
    turn: int = 0  # number of the last change of `drive`, counted over all pins
    watchers: list[Watcher] = field(default_factory=list)
    wires: set[Pin] = field(default_factory=set)

    def __repr__(self) -> str:
        return f"{self.board}:{self.name}"


class Wiring:
    """All pins of the bench. A pin is created when it is first used."""

    def __init__(self) -> None:
        self._pins: dict[tuple[str, str], Pin] = {}
        self._turn = 0

    def pin(self, board: str, name: str) -> Pin:
        """Return the pin `name` of `board`."""
        return self._pins.setdefault((board, name), Pin(board, name))

    def pins(self, board: str) -> list[Pin]:
        """Return the pins of `board` that were used so far."""
        return [pin for pin in self._pins.values() if pin.board == board]

    def net(self, pin: Pin) -> set[Pin]:
        """Return all pins connected to `pin`, including itself."""
        connected, todo = {pin}, [pin]
        while todo:
            new = todo.pop().wires - connected
            connected |= new
            todo += new
        return connected

    def signal(self, pin: Pin) -> Signal:
        """Return the signal of `pin`: that of a short circuit, else the last driven one, else the pull, else low.

        A pull-up takes precedence over a pull-down.
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
        """Return whether the net of `pin` is driven."""
        return any(p.drive is not None for p in self.net(pin))

    def set_drive(self, pin: Pin, signal: Signal | None, t: float) -> None:
        """Let `pin` drive `signal` from `t`, or release it with None."""
        net = self.net(pin)
        self.settle(net, t)
        self._turn += 1
        pin.drive, pin.turn = signal, self._turn
        self.changed(net, t)

    def set_pull(self, pin: Pin, pull: Constant | None, t: float) -> None:
        """Connect `pin` to high or low by a resistor, or remove the resistor with None."""
        net = self.net(pin)
        self.settle(net, t)
        pin.pull = pull
        self.changed(net, t)

    def set_short(self, pin: Pin, level: Constant | None, t: float) -> None:
        """Short `pin` to a level, or remove the short circuit with None."""
        net = self.net(pin)
        self.settle(net, t)
        pin.short = level
        self.changed(net, t)

    def connect(self, first: Pin, second: Pin, t: float) -> None:
        """Connect two pins by a wire."""
        net = self.net(first) | self.net(second)
        self.settle(net, t)
        first.wires.add(second)
        second.wires.add(first)
        self.changed(net, t)

    def cut(self, first: Pin, second: Pin, t: float) -> None:
        """Remove the wire between two pins."""
        net = self.net(first)
        self.settle(net, t)
        first.wires.discard(second)
        second.wires.discard(first)
        self.changed(net, t)

    def settle(self, pins: set[Pin], t: float) -> None:
        """Notify the watchers of `pins` before a change."""
        for watcher in [watcher for pin in pins for watcher in pin.watchers]:
            watcher.settle(t)

    def changed(self, pins: set[Pin], t: float) -> None:
        """Notify the watchers of `pins` after a change."""
        for watcher in [watcher for pin in pins for watcher in pin.watchers]:
            watcher.changed(t)
