"""Which log lines a person asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from runtime.web.source import LEVELS, LogEntry

SHOWN: Final = 500  # lines; the page keeps as many while it follows

_RANK: Final[Mapping[str, int]] = {
    **{level: rank for rank, level in enumerate(LEVELS)},
    "warning": LEVELS.index("warn"),
    "critical": len(LEVELS),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Level and above, one resource (its full name) or all, and a text anywhere in the line, in any case."""

    level: str = "info"
    resource: str = ""
    text: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        """From the parameters of a request; what is not understood is as if it was not given."""
        level = query.get("level", "info").lower()
        return cls(level if level in LEVELS else "info", query.get("resource", ""), query.get("text", "").strip())

    def admits(self, entry: LogEntry) -> bool:
        """Whether the line is wanted."""
        if _RANK.get(entry.level, len(LEVELS)) < _RANK[self.level]:
            return False
        if self.resource and entry.resource != self.resource and not entry.logger.endswith(self.resource):
            return False
        wanted = self.text.casefold()
        return not wanted or any(wanted in part.casefold() for part in (entry.message, entry.fields, entry.logger))


def newest(entries: Iterable[LogEntry], wanted: Filter, limit: int = SHOWN) -> list[LogEntry]:
    """The last `limit` of those that are wanted, oldest first."""
    return [entry for entry in entries if wanted.admits(entry)][-limit:]
