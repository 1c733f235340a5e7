"""Digital lines: a level that is high or low.

Levels are logical: True is high, after `active_low` has been taken into account. A line belongs to whoever opened it;
opening it twice raises HalError (busy) that names its owner. Reading and writing are immediate on every back end (no
bus transfer); a line whose device vanished raises HalError (gone).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

Bias = Literal["as_is", "none", "up", "down"]
Drive = Literal["push_pull", "open_drain", "open_source"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a GPIO chip: the chip by label, name or path, and the line's offset in it, from 0.

    A label (`pinctrl-bcm2711`) survives another order of probing; a name (`gpiochip0`) and a path may not.
    """

    chip: str
    offset: int

    def __str__(self) -> str:
        return f"{self.chip} line {self.offset}"


@dataclass(frozen=True, slots=True)
class InputSettings:
    """How a line is read. `debounce`: seconds during which a level must be stable; 0 for none."""

    bias: Bias = "as_is"
    active_low: bool = False
    debounce: float = 0.0


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """How a line is driven.

    `safe` is the logical level at opening and at closing, whatever the reason for closing.
    """

    safe: bool = False
    active_low: bool = False
    drive: Drive = "push_pull"


@dataclass(frozen=True, slots=True)
class Edge:
    """One change of level: the new level and when it happened, in seconds of the run's own clock."""

    high: bool
    time: float


class EdgeEvents(Protocol):
    """Edges in the order in which they happened. One reader."""

    @property
    def dropped(self) -> int:
        """How many of the oldest edges were dropped because the reader was slow."""

    def __aiter__(self) -> AsyncIterator[Edge]:
        """Wait for and return the edges one by one; ends only by cancellation."""


class DigitalInput(Protocol):
    """A level that somebody else drives."""

    def read(self) -> bool:
        """The level now."""

    def edges(self) -> AbstractAsyncContextManager[EdgeEvents]:
        """Listen while the context is open; no edge in it is missed, except those counted as dropped."""


class DigitalOutput(Protocol):
    """A level that we drive. It has a safe level, reached when its owner closes it for any reason."""

    def read(self) -> bool:
        """The level on the line, which is the written one unless the line is shorted."""

    def write(self, high: bool) -> None:
        """Drive the line to a level and hold it there."""
