"""What is counted of each captured method; every reading is in exactly one of the outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class Counters:
    """Of one method since its capture began."""

    captured: int = 0  # readings that the resource gave
    filtered: int = 0  # times that it had nothing to store
    failed: int = 0  # calls that failed
    missed: int = 0  # beats at which no reading was taken, because the resource or the disk was busy
    written: int = 0  # readings that survive the end of the process
    committed: int = 0  # readings that survive the end of the power; part of `written`
    lost: int = 0  # readings that could not be written before capture had to end
    files: int = 0  # closed
    bytes: int = 0  # written, of readings and headers
    last_error: str = ""
    waiting_for: str = ""  # at this moment: resource, disk or nothing

    def as_mapping(self) -> Mapping[str, Any]:
        """For status."""
        return asdict(self)
