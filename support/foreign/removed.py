"""The result of a removal."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Removal:
    """What a call of `remove` did."""

    path: Path
    entries: int = 0  # that were removed, or moved up
    left: dict[str, str] = field(default_factory=dict)  # name in the folder, or of its folder: why it was not removed
    out_of_time: bool = False  # call again to continue

    @property
    def complete(self) -> bool:
        """Whether nothing exists at the path any more."""
        return not self.left and not self.out_of_time

    def __str__(self) -> str:
        """What is left and why, for a log; empty if nothing is left."""
        reasons = [f"{name[:100]}: {reason}" for name, reason in self.left.items()]
        if self.out_of_time:
            reasons.append("its removal has not finished")
        return f"{self.path} is not removed completely: {'; '.join(reasons)}" if reasons else ""
