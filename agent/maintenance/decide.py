"""Decision whether an update or a restart may take place now, as a table of rules. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from agent.maintenance.windows import MaintenanceHours, openings

MAX_NAMES: Final = 5
"""Leases that a reason names."""


@dataclass(frozen=True)
class Policy:
    """What the owner of the device permits."""

    windows: Sequence[MaintenanceHours] = ()
    """Maintenance takes place while one of them is open; without windows at any time."""
    longest_deferral: float | None = None
    """Seconds after which maintenance is allowed although a rule forbids it; None waits without limit."""
    zone: tzinfo = UTC
    """Time zone of the device."""


@dataclass(frozen=True)
class CountedLease:
    """Request of a program or a person to leave the machine alone until a time, in seconds since 1970."""

    name: str
    until: float


@dataclass(frozen=True)
class MaintenanceFacts:
    """State of the machine at the time of the decision."""

    waiting_since: float
    """Time since which the update or restart has been waiting, in seconds since 1970. The caller stores it, so that a
    reboot does not begin the longest deferral again, and corrects it when the clock is set."""
    requested: bool = False
    """Whether a person requested it now."""
    leases: Sequence[CountedLease] = ()
    """Leases; those that have expired are ignored."""
    server_runs: bool = True
    """Whether machine-server runs. If it does not, its answer does not count and nothing is disturbed."""
    server_refuses: str | None = None
    """Reason for which machine-server does not allow a restart: its maintenance sensor, a configuration that is being
    applied, or no answer. None if it allows it."""


@dataclass(frozen=True)
class MaintenanceVerdict:
    """Answer and its reason, in words for people."""

    allowed: bool
    reason: str
    since: float
    """`waiting_since` of the facts."""
    until: float | None
    """If not allowed: earliest time at which the clock alone may allow it, or None if that depends on an event. If
    allowed: time at which the window closes, or None. In seconds since 1970."""
    latest: float | None = None
    """Time from which maintenance is allowed whatever forbids it: the end of the longest deferral; None: never."""
    others: tuple[str, ...] = ()
    """If not allowed: the further reasons."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """All reasons, the first one first."""
        return (self.reason, *self.others)


@dataclass(frozen=True)
class _Result:
    reason: str
    until: float | None = None


_Rule = Callable[[float, Policy, MaintenanceFacts], _Result | None]


def decide(now: float, settings: Policy, facts: MaintenanceFacts) -> MaintenanceVerdict:
    """Return whether an update or a restart may take place at `now`, in seconds since 1970.

    The first rule of PERMISSIONS that applies allows it. Otherwise every rule of REFUSALS that applies forbids it,
    and gives a reason. A clock that is set back before `waiting_since` only makes the deferral longer.
    """
    limit = settings.longest_deferral
    latest = None if limit is None else facts.waiting_since + limit
    for permission in PERMISSIONS:
        if (result := permission(now, settings, facts)) is not None:
            return MaintenanceVerdict(True, result.reason, facts.waiting_since, result.until, latest)
    refusals = [result for refusal in REFUSALS if (result := refusal(now, settings, facts)) is not None]
    if not refusals:
        current = [item.end for item in openings(settings.windows, now, settings.zone) if item.start <= now]
        reason = "the maintenance window is open" if current else "nothing forbids it"
        return MaintenanceVerdict(True, reason, facts.waiting_since, max(current, default=None), latest)
    until = max((result.until for result in refusals if result.until is not None), default=None)
    if latest is not None:
        until = latest if until is None else min(until, latest)
    reason, *others = (result.reason for result in refusals)
    return MaintenanceVerdict(False, reason, facts.waiting_since, until, latest, tuple(others))


def _requested(now: float, settings: Policy, facts: MaintenanceFacts) -> _Result | None:
    return _Result("a person requested it") if facts.requested else None


def _deferred_long_enough(now: float, settings: Policy, facts: MaintenanceFacts) -> _Result | None:
    limit = settings.longest_deferral
    if limit is None or now - facts.waiting_since < limit:
        return None
    return _Result(f"it has waited for the longest deferral, {limit / 3600:g} h")


def _leased(now: float, settings: Policy, facts: MaintenanceFacts) -> _Result | None:
    leases = [lease for lease in facts.leases if lease.until > now]
    if not leases:
        return None
    last = max(leases, key=lambda lease: lease.until)
    names = sorted({lease.name for lease in leases})
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return _Result(
        f"held by {', '.join(names[:MAX_NAMES])}{more} until {_local(last.until, settings.zone)}", last.until
    )


def _server_refuses(now: float, settings: Policy, facts: MaintenanceFacts) -> _Result | None:
    return _Result(facts.server_refuses) if facts.server_runs and facts.server_refuses is not None else None


def _outside_windows(now: float, settings: Policy, facts: MaintenanceFacts) -> _Result | None:
    upcoming = openings(settings.windows, now, settings.zone)
    if not upcoming or upcoming[0].start <= now:
        return None
    start = upcoming[0].start
    return _Result(f"the maintenance window opens at {_local(start, settings.zone)}", start)


def _local(moment: float, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(moment, zone):%Y-%m-%d %H:%M %Z}"


PERMISSIONS: Final[Sequence[_Rule]] = (_requested, _deferred_long_enough)
"""Rules that allow maintenance whatever else is true."""
REFUSALS: Final[Sequence[_Rule]] = (_leased, _server_refuses, _outside_windows)
"""Rules that forbid maintenance, in the order in which people see their reasons."""
