"""Messages that others logged and sent here: into this machine's own log, under their own names."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from runtime.robot.messages import LogEntry
from schema.errors import ConfigError
from schema.log import LEVELS, parse_level

LATE: Final = timedelta(seconds=1)  # an entry older than this keeps its own time beside the time of arrival
_RESERVED: Final = frozenset(
    {"event", "level", "logger", "timestamp", "exc_info", "stack_info", "log_ts", "host", "stack"}
)


def forward(entries: Iterable[LogEntry]) -> None:
    """Log each entry; a level that is not known counts as info."""
    now = datetime.now(UTC)
    for entry in entries:
        fields = {
            f"field_{key}" if key in _RESERVED else key: value for one in entry.fields for key, value in _pairs(one)
        }
        if entry.time is not None and now - entry.time > LATE:
            fields["log_ts"] = entry.time.isoformat()
        if entry.stack:
            fields["stack"] = entry.stack
        structlog.get_logger(entry.logger_name or "rdk").log(_level(entry.level), entry.message, **fields)


def _pairs(field: object) -> Iterable[tuple[str, object]]:
    """One field of an entry: `{"Key": name, "String": text, ...}` as Go modules write it, else plain keys."""
    if not isinstance(field, dict):
        return ()
    if isinstance(key := field.get("Key"), str):
        value = next((field[kind] for kind in ("String", "Integer", "Interface") if field.get(kind)), "")
        return ((key, value),)
    return field.items()


def _level(word: str) -> int:
    try:
        return parse_level(word)
    except ConfigError:
        return LEVELS["info"]
