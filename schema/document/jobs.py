"""Job entries: scheduled calls of resource methods."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec

from schema.document.log import LogConfiguration
from schema.document.section import Section
from schema.durations import parse_duration
from schema.errors import ConfigError
from schema.names import check_name

CONTINUOUS: Final = "continuous"

_CRON_FIELD = re.compile(r"(?:[A-Za-z]{3}|[\d*?LW#/,-]){1,200}+\Z", re.ASCII)


def schedule_kind(schedule: str) -> Literal["continuous", "every", "cron"] | None:
    """Return the kind of a job's schedule; None if it is invalid."""
    if schedule == CONTINUOUS:
        return "continuous"
    try:
        return "every" if parse_duration(schedule) > 0 else None
    except ValueError:
        fields = schedule.split()
        return "cron" if len(fields) in {5, 6} and all(map(_CRON_FIELD.match, fields)) else None


class ScheduledJob(Section, frozen=True, kw_only=True):
    """Scheduled, repeated call of a resource method."""

    name: str
    """Name, unique among jobs."""
    schedule: str
    """Duration (`30s`), five or six cron fields (`*/5 * * * *`, seconds first if six), or `continuous`."""
    resource: str
    """Short or full name of the resource."""
    method: str
    """Name of the RPC, such as `GetReadings` or `DoCommand`."""
    command: dict[str, Any] = msgspec.field(default_factory=dict)
    """Argument of `DoCommand`."""
    log_configuration: LogConfiguration | None = None
    """Level of the job's logger."""

    def __post_init__(self) -> None:
        check_name(self.name, path="name")
        if schedule_kind(self.schedule) is None:
            raise ConfigError(
                "schedule",
                f"{self.schedule!r} is not a schedule",
                value=self.schedule,
                remedy='write a positive duration such as "30s", five or six cron fields, or "continuous"',
            )
        for field in ("resource", "method"):
            if not getattr(self, field):
                raise ConfigError(field, "is empty", remedy=f"name the {field} to call")
