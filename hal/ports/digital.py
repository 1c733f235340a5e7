"""Digital lines: a level that is high or low.

Levels are logical: True means high, with `active_low` applied. A line can be opened only once at a time; opening it
again raises HalError (busy) with the name of its owner. Reading and writing are immediate in all families (without a
bus transfer); a line whose device has vanished raises HalError (gone).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from schema import Bias as Bias

Drive = Literal["push_pull", "open_drain", "open_source"]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a GPIO chip: the chip by label, name or path, and the line's offset in it, from 0.

    A label (`pinctrl-bcm2711`) does not depend on the probing order; a name (`gpiochip0`) and a path may change.
    """

    chip: str
    offset: int

    def __str__(self) -> str:
        return f"{self.chip} line {self.offset}"


@dataclass(frozen=True, slots=True)
class InputSettings:
    """Settings of an input. `debounce` is the time in seconds for which a level must be stable; 0 for no debouncing."""

    bias: Bias = "as_is"
    active_low: bool = False
    debounce: float = 0.0


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """Settings of an output.

    `safe` is the logical level at opening and at closing, for any reason of closing.
    """

    safe: bool = False
    active_low: bool = False
    drive: Drive = "push_pull"


@dataclass(frozen=True, slots=True)
class Edge:
    """A change of level: the new level, and its time in seconds of Trio's clock."""

    high: bool
    time: float


class EdgeEvents(Protocol):
    """Edges in the order of their times, for one reader."""

    @property
    def dropped(self) -> int:
        """The number of old edges that were dropped because the reader was too slow."""

    def __aiter__(self) -> AsyncIterator[Edge]:
        """Iterate over the edges; ends only by cancellation."""


class DigitalInput(Protocol):
    """A line that is driven externally."""

    def read(self) -> bool:
        """Return the current level."""

    def edges(self) -> AbstractAsyncContextManager[EdgeEvents]:
        """Listen while the context is open; all edges are delivered, except those counted as dropped."""


class DigitalOutput(Protocol):
    """A line that we drive. It is set to its safe level when it is closed for any reason."""

    def read(self) -> bool:
        """Return the level on the line, which is the written one unless the line is shorted."""

    def write(self, high: bool) -> None:
        """Set the line to a level and hold it."""
