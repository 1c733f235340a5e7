"""Hot-plug: events of the system about added and removed devices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HotplugEvent:
    """An event: `action` is add, remove, change, bind, unbind, move, online or offline.

    `device` is the kernel's path below /sys, `node` the path below /dev or empty.
    """

    action: str
    subsystem: str
    device: str
    node: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


class HotplugEvents(Protocol):
    """Events in order. The action `lost` stands for an overflow: all devices must be checked again."""

    def __aiter__(self) -> AsyncIterator[HotplugEvent]:
        """Iterate over the events; ends only by cancellation."""
