"""Counters of a captured method. Every reading is counted under exactly one outcome. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class Counters:
    """Counters of one method since the start of its capture."""

    captured: int = 0  # readings that the resource returned
    mended: int = 0  # pictures of which annotations were changed or left out; part of `captured`
    filtered: int = 0  # calls for which the resource had nothing to store
    failed: int = 0  # calls that failed
    missed: int = 0  # ticks without a reading, because the resource or the disk was busy
    written: int = 0  # readings that survive the end of the process
    committed: int = 0  # readings that survive a power cut; part of `written`
    lost: int = 0  # readings that could not be written before capture had to end
    files: int = 0  # closed files
    bytes: int = 0  # written bytes of readings and headers
    last_error: str = ""
    waiting_for: str = ""  # at this moment: "resource", "disk" or empty

    def as_mapping(self) -> Mapping[str, Any]:
        """Return the counters as a mapping, for the status."""
        return asdict(self)
