"""View model of the report of an agent, on the machine page. Pure.

A report comes from a machine and may have any content. Its times are corrected by the difference between the clock of
the machine, as of the report, and that of the cloud; a time outside the range of dates is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cloud.domain.releases import reports
from cloud.domain.releases.agent_report import DeviceNetwork, Exit, Program, ReportedProblem, report_of
from cloud.domain.releases.requests import AgentRequest
from support.text.words import span
from uplink.releases import AGENT, SERVER, STEP_WORDS

SHOWN_OUTCOMES: Final = 20

_LONGEST: Final = 100 * 365 * 86400.0  # seconds that a program can have run

_GONE: Final = ("unconfigured", "not installed")
_DISABLED: Final = ("unconfigured", "switched off")
_STOPPED: Final = ("unhealthy", "does not run")
_SILENT: Final = ("unhealthy", "does not answer")
_SERVES: Final = ("ready", "serves")
_SWITCHED: Final = frozenset({"switch", "trial", "roll_back", "recover"})
_RESULTS: Final = {"updated": "ready", "rolled_back": "unhealthy", "rejected": "unhealthy"}


@dataclass(frozen=True, slots=True)
class ReasonedEntry:
    """Something with a reason: what is waited for, an exit, or a release in quarantine."""

    text: str
    since: datetime | None
    name: str = ""  # version of a release


@dataclass(frozen=True, slots=True)
class ShownOutcome:
    """How an update ended."""

    program: str
    before: str
    version: str
    css: str
    result: str
    reason: str
    ended: datetime


@dataclass(frozen=True, slots=True)
class ProgramView:
    """A program; `css` and `state` are the class and text of its state."""

    name: str
    version: str
    css: str
    state: str
    since: datetime | None
    previous: str
    target: str
    step: str
    step_since: datetime | None
    next_attempt: datetime | None
    error: str
    trial: bool  # then `error` is why the release is not confirmed yet
    waiting: tuple[ReasonedEntry, ...]
    restart: ReasonedEntry | None
    hold_until: datetime | None
    kept: str  # why no other version is installed although nothing is wrong
    quarantine: tuple[ReasonedEntry, ...]
    exits: tuple[ReasonedEntry, ...]
    last: ShownOutcome | None
    updatable: bool  # an update has not begun to switch, so a person can have it installed now


@dataclass(frozen=True, slots=True)
class AgentView:
    """The newest report of a part. `received` is None before the first one, and if this cloud cannot read it."""

    received: datetime | None = None
    programs: tuple[ProgramView, ...] = ()
    problems: tuple[ReportedProblem, ...] = ()
    outcomes: tuple[ShownOutcome, ...] = ()  # the newest first
    more: int = 0  # outcomes that are not shown
    files: tuple[str, ...] = ()  # written for the system configuration
    requests: tuple[AgentRequest, ...] = ()  # that have not arrived
    network: DeviceNetwork | None = None  # None: not reported


def agent_view(
    received: reports.Received | None,
    outcomes: Sequence[reports.RecordedOutcome],
    now: datetime,
    requests: Sequence[AgentRequest] = (),
    more_problems: Sequence[ReportedProblem] = (),
) -> AgentView:
    """Return the view of the newest report of a part, of outcomes, the newest first, and of requests to its agent.

    `more_problems` are those that the cloud has found.
    """
    ended = tuple(_outcome(entry) for entry in outcomes)
    shown, more = ended[:SHOWN_OUTCOMES], len(ended[SHOWN_OUTCOMES:])
    report = report_of(received.report) if received is not None else None
    if received is None or report is None:
        return AgentView(outcomes=shown, more=more, requests=tuple(requests), problems=tuple(more_problems))
    clock = _Clock(report.time, received.received, now)
    agent = _program(AGENT, report.agent, clock, ended, disabled=False)
    server = _program(SERVER, report.server, clock, ended, disabled=report.disabled)
    files = report.system.files
    return AgentView(
        received.received,
        (agent, server),
        (*report.problems, *more_problems),
        shown,
        more,
        files,
        tuple(requests),
        report.network,
    )


@dataclass(frozen=True, slots=True)
class _Clock:
    """Converts times of a report that was made at `made` and received at `received`."""

    made: float
    received: datetime
    now: datetime

    def of(self, seconds: float) -> datetime | None:
        """Return a time by the clock of the cloud; None for 0 and what is not a date."""
        try:
            return self.received + timedelta(seconds=seconds - self.made) if seconds > 0 else None
        except (OverflowError, ValueError):
            return None

    def later(self, seconds: float) -> datetime | None:
        """Return a time by the clock of the cloud if it is in the future."""
        moment = self.of(seconds)
        return moment if moment is not None and moment > self.now else None


def _program(
    name: str, report: Program, clock: _Clock, ended: Sequence[ShownOutcome], *, disabled: bool
) -> ProgramView:
    css, state = _state(report, disabled=disabled)
    restart = report.restart
    return ProgramView(
        name=name,
        version=report.version,
        css=css,
        state=state,
        since=clock.of(report.since) if report.running else None,
        previous=report.previous,
        target=report.target,
        step=STEP_WORDS.get(report.step, report.step),
        step_since=clock.of(report.step_since),
        next_attempt=clock.later(report.deadline) if report.pausing else None,
        error=report.error,
        trial=report.step == "trial",
        waiting=tuple(ReasonedEntry(item.reason, clock.of(item.since)) for item in report.waiting_for),
        restart=ReasonedEntry(restart.reason, clock.of(restart.since)) if restart is not None else None,
        hold_until=clock.later(report.hold_until),
        kept=report.kept,
        quarantine=tuple(ReasonedEntry(item.reason, clock.of(item.time), item.version) for item in report.quarantine),
        exits=tuple(ReasonedEntry(_exit(item), clock.of(item.time)) for item in reversed(report.exits)),
        last=next((outcome for outcome in ended if outcome.program == name), None),
        updatable=bool(report.target) and report.step not in _SWITCHED,
    )


def _state(report: Program, *, disabled: bool) -> tuple[str, str]:
    if disabled:
        return _DISABLED
    if not report.running:
        return _STOPPED if report.version else _GONE
    return _SERVES if report.serving else _SILENT


def _exit(end: Exit) -> str:
    return f"{end.reason}, after {span(min(end.ran, _LONGEST))}"


def _outcome(entry: reports.RecordedOutcome) -> ShownOutcome:
    css = _RESULTS.get(entry.result, "unconfigured")
    result = entry.result.replace("_", " ")
    return ShownOutcome(entry.program, entry.version_from, entry.version, css, result, entry.reason, entry.ended)
