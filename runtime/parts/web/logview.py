"""Filtering of log lines for display. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from engine.views import LEVELS, ShownEntry

SHOWN: Final = 500  # lines; the page also keeps as many while it follows

_RANK: Final[Mapping[str, int]] = {
    **{level: rank for rank, level in enumerate(LEVELS)},
    "warning": LEVELS.index("warn"),
    "critical": len(LEVELS),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of log lines: minimum level, full name of a resource or all, and a case-insensitive text."""

    level: str = "info"
    resource: str = ""
    text: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        """Parse the parameters of a request. Invalid ones are ignored."""
        level = query.get("level", "info").lower()
        return cls(level if level in LEVELS else "info", query.get("resource", ""), query.get("text", "").strip())

    def admits(self, entry: ShownEntry) -> bool:
        """Return whether a line matches."""
        if _RANK.get(entry.level, len(LEVELS)) < _RANK[self.level]:
            return False
        if self.resource and entry.resource != self.resource and not entry.logger.endswith(self.resource):
            return False
        text = self.text.casefold()
        return not text or any(text in part.casefold() for part in (entry.message, entry.fields, entry.logger))


def newest(entries: Iterable[ShownEntry], log_filter: Filter, limit: int = SHOWN) -> list[ShownEntry]:
    """Return the last `limit` matching entries, oldest first."""
    return [entry for entry in entries if log_filter.admits(entry)][-limit:]
