"""Filter and view models of the log page. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from cloud.domain.machines.log_counts import LEVELS as SAME
from cloud.domain.machines.log_counts import LogCounts
from cloud.domain.machines.logs import LogQuery, LogRecord
from cloud.values.cursor import cursor, read_cursor
from schema import ErrorKind, MachineError
from support.text import words

LEVELS: Final = tuple(SAME)  # ascending
PAGE: Final = 200  # lines
MOST_SOURCES: Final = 6  # of a page, as links
BRIEF: Final = 300  # characters of a closed line
RESOURCES: Final = "rdk.resource_manager."  # logger prefix of resources, before the full name


@dataclass(frozen=True, slots=True)
class LogFilter:
    """A log filter: all conditions must hold. Times are UTC."""

    level: str = "debug"
    text: str = ""
    logger: str = ""
    start: datetime | None = None
    end: datetime | None = None
    before: tuple[int, int] | None = None  # time and number of the first line on the following page
    around: int = 0  # number of the line that is shown with those before and after it, whatever the filter; 0 for none

    @classmethod
    def of(cls, query: Mapping[str, str]) -> LogFilter:
        """Parse a query. INVALID if a time or cursor is not valid."""
        level = query.get("level", "debug")
        return cls(
            level if level in LEVELS else "debug",
            query.get("text", "").strip(),
            query.get("logger", "").strip(),
            time_of(query.get("from", ""), "from"),
            time_of(query.get("to", ""), "to"),
            read_cursor(before) if (before := query.get("before", "")) else None,
            _number(query.get("around", "")),
        )

    def fields(self) -> dict[str, str]:
        """Return the filter as a query, without `before` and defaults."""
        fields = {
            "level": self.level if self.level != "debug" else "",
            "text": self.text,
            "logger": self.logger,
            "from": field_of(self.start),
            "to": field_of(self.end),
        }
        return {key: value for key, value in fields.items() if value}

    @property
    def live(self) -> bool:
        """Whether new lines belong to the page."""
        return self.before is None and self.end is None and not self.around

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of all levels from `level` upwards; empty for all."""
        if self.level == "debug":
            return ()
        return tuple(name for level in LEVELS[LEVELS.index(self.level) :] for name in SAME[level])

    def search(self) -> LogQuery:
        """Return the database query: newest first, one entry more than a page."""
        return LogQuery(
            levels=self.levels,
            contains=self.text,
            start=self.start,
            end=self.end,
            source=self.logger,
            after=self.before,
            limit=PAGE + 1,
        )

    def admits(self, record: LogRecord) -> bool:
        """Return whether a new entry matches, by the same rules as `search`."""
        text, logger = self.text.lower(), self.logger.lower()
        return (
            (not self.levels or record.level in self.levels)
            and (self.start is None or record.position >= self.start)
            and (self.end is None or record.position < self.end)
            and logger in record.logger.lower()
            and (
                text in record.message.lower()
                or text in record.logger.lower()
                or text in json.dumps(record.fields).lower()
            )
        )


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A log line, for the template. `brief` is what a closed line shows, `message` everything, with the stack."""

    number: int
    time: datetime
    level: str
    logger: str
    source: str  # display name of the logger: for a resource, its name
    message: str
    fields: str
    pairs: tuple[tuple[str, str], ...] = ()  # the same fields by name
    repeats: tuple[datetime, ...] = ()  # times of equal lines that follow at once

    @property
    def brief(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0][:BRIEF]

    @property
    def opens(self) -> bool:
        """Whether there is more to show than a closed line does."""
        return bool(self.brief != self.message or self.pairs or self.repeats)


def line(record: LogRecord) -> ShownLine:
    """Return the view model of an entry."""
    message = f"{record.message}\n{record.stack.rstrip()}" if record.stack else record.message
    pairs = {key: value for field in record.fields for key, value in _pairs(field)}
    level = next((level for level, names in SAME.items() if record.level in names), record.level)
    source = record.logger.removeprefix(RESOURCES)
    display_name = words.short(source) if source != record.logger else record.logger
    fields = tuple((key, words.value_text(value)) for key, value in pairs.items())
    return ShownLine(
        record.number, record.time, level, record.logger, display_name, message, words.pairs_text(pairs), fields
    )


def collapsed(lines: Iterable[ShownLine]) -> list[ShownLine]:
    """Return lines, oldest first; equal ones that follow each other are one line with the times of its repeats."""
    shown: list[ShownLine] = []
    for following in lines:
        last = shown[-1] if shown else None
        if last is not None and _same(last) == _same(following):
            shown[-1] = replace(last, repeats=(*last.repeats, following.time))
        else:
            shown.append(following)
    return shown


def sources(lines: Iterable[ShownLine]) -> list[tuple[str, str]]:
    """Return loggers and display names of lines, those with most lines first, at most MOST_SOURCES."""
    counts = Counter((shown.logger, shown.source) for shown in lines)
    return [source for source, _ in counts.most_common(MOST_SOURCES)]


def _same(shown: ShownLine) -> tuple[str, ...]:
    return shown.level, shown.logger, shown.message, shown.fields


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def page(records: list[LogRecord]) -> tuple[list[ShownLine], str]:
    """Return a page of the results of `search`, oldest first, and the cursor of the page before it, empty if none."""
    page_records = records[:PAGE]
    return collapsed(line(record) for record in reversed(page_records)), cursor(
        page_records[-1].position, page_records[-1].number
    ) if len(records) > PAGE else ""


_LINES: Final = (("error", "errors", 6), ("warn", "warnings", 4), ("info", "information", 0), ("debug", "debug", 7))
"""Levels as lines of a plot: level, words and number of the color."""


def rates(counts: LogCounts) -> dict[str, Any]:
    """Return counts as the answer that plots read, a line for each level that occurs; times in milliseconds."""
    starts = [start / 1000 for start in counts.buckets.starts()]
    fields = [
        {
            "name": level,
            "label": words,
            "chart": "log lines",
            "color": color,
            "boolean": False,
            **dict.fromkeys(("min", "max", "mean", "count"), numbers),
            "last": {"time": starts[-1], "value": numbers[-1]},
        }
        for level, words, color in _LINES
        if any(numbers := counts.levels[level])
    ]
    source = {"machine": "", "part": "", "component": "", "method": "", "tags": [], "sampled": False, "others": []}
    return {
        "from": counts.start / 1000,
        "to": counts.end / 1000,
        "step": counts.buckets.step / 1000,
        "times": starts,
        "sampled": False,
        "more": False,
        "series": [{**source, "fields": fields}] if fields else [],
    }


def field_of(moment: datetime | None) -> str:
    """Format a time for an input of type datetime-local."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M") if moment is not None else ""


def _pairs(field: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return a field as key-value pairs, also in the form `{"Key": ..., "Value": ...}` that machines send."""
    if field.keys() == {"Key", "Value"}:
        return [(str(field["Key"]), field["Value"])]
    return list(field.items())


def time_of(text: str, name: str) -> datetime | None:
    """Parse the value of an input of type datetime-local as UTC; None if empty. INVALID if it is not a time."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise MachineError(
            f"{name}={text[:40]!r} is not a time", kind=ErrorKind.INVALID, remedy="write it as 2026-01-31T12:00"
        ) from None
