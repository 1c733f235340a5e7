"""Hot-plug: what the system says when devices come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HotplugEvent:
    """One event: `action` is add, remove, change, bind, unbind, move, online or offline.

    `device` is the kernel's path below /sys, `node` the path below /dev or empty.
    """

    action: str
    subsystem: str
    device: str
    node: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


class HotplugEvents(Protocol):
    """Events in order. An overflow is told as one event with the action `lost`: look at everything again."""

    def __aiter__(self) -> AsyncIterator[HotplugEvent]:
        """Wait for and return the events one by one; ends only by cancellation."""
