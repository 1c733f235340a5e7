"""Report of an agent: what runs, which update is in progress, what it waits for, and what is wrong. Pure.

The same report is the answer of `machine agent status`. All times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from agent.update.record import Outcome, Quarantined, Record, Step
from agent.update.steps import release_to_start
from schema.errors import ConfigError

FORMAT: Final = 1
"""The format of the report; increased by a change that a reader of the former format would misread."""

MAX_BYTES: Final = 64 * 1024
"""Size of a report that the cloud accepts."""

MAX_PROBLEMS: Final = 50
_MAX_TEXT: Final = 500  # characters of a reason or message
_MAX_WORD: Final = 300  # characters of any other text; the cloud refuses longer ones
_WORDS: Final = frozenset({"version", "previous", "target", "version_from", "version_to", "offline"})


class Waiting(msgspec.Struct, frozen=True):
    """Something that an update or restart waits for."""

    reason: str
    since: float  # when it became a reason; when the step began is in `step_since`


def waits(before: Iterable[Waiting], reasons: Iterable[str], now: float) -> tuple[Waiting, ...]:
    """Return what is waited for now: a reason that was one before keeps its time."""
    since = {waiting.reason: waiting.since for waiting in before}
    return tuple(Waiting(reason, since.get(reason, now)) for reason in reasons)


class Problem(msgspec.Struct, frozen=True):
    """Something that is wrong, where, and what to do. Contains no secrets."""

    path: str  # of a setting or file; empty if there is none
    message: str
    remedy: str = ""


class Exit(msgspec.Struct, frozen=True):
    """An end of a program that was not requested."""

    time: float
    reason: str  # such as `exit code 1` or `killed by signal 9 (out of memory)`
    ran: float  # seconds


class ProgramReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """State of one program: its releases, its update, and its process."""

    version: str = ""  # that is to run
    sha256: str = ""
    running: bool = False
    since: float = 0.0  # start of the process
    serving: bool = False  # it answers requests
    previous: str = ""  # version for an immediate roll-back
    target: str = ""  # version of the update in progress
    step: str = ""  # its step: see docs/design/agent.md
    step_since: float = 0.0
    deadline: float = 0.0
    pausing: bool = False  # after a failure
    error: str = ""  # the last one of this update
    waiting_for: tuple[Waiting, ...] = ()
    restart: Waiting | None = None  # a restart that waits for maintenance, and why it is needed
    restart_waiting_for: tuple[Waiting, ...] = ()
    hold_until: float = 0.0
    quarantine: tuple[Quarantined, ...] = ()
    history: tuple[Outcome, ...] = ()  # the newest last
    exits: tuple[Exit, ...] = ()  # the newest last


class SystemReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the agent has done to the operating system."""

    files: tuple[str, ...] = ()  # files outside its own folder that the system configuration has written
    upgraded: float = 0.0  # end of the last upgrade of packages by the agent
    outcome: str = ""  # of this upgrade
    waiting: Waiting | None = None  # an upgrade of packages, or a reboot for it


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """State of the agent."""

    time: float
    agent: ProgramReport
    server: ProgramReport
    offline: str = ""  # why the cloud cannot be asked, when the report was made
    disabled: bool = False  # machine-server is switched off by a setting
    problems: tuple[Problem, ...] = ()
    system: SystemReport = SystemReport()
    format: int = msgspec.field(default_factory=lambda: FORMAT)  # a factory, so that it is never omitted


def program_report(
    record: Record | None,
    *,
    running: bool = False,
    since: float = 0.0,
    serving: bool = False,
    waiting_for: Iterable[Waiting] = (),
    exits: Sequence[Exit] = (),
    restart: Waiting | None = None,
    restart_waiting_for: tuple[Waiting, ...] = (),
) -> ProgramReport:
    """Return the report of a program from its record and the facts about its process. None: it is not installed."""
    if record is None:
        return ProgramReport(
            running=running,
            since=since,
            serving=serving,
            exits=tuple(exits),
            restart=restart,
            restart_waiting_for=restart_waiting_for,
        )
    release, progress = release_to_start(record), record.progress
    report = ProgramReport(
        version=release.version,
        sha256=release.sha256,
        running=running,
        since=since,
        serving=serving,
        previous=record.slots.previous.version if record.slots.previous is not None else "",
        hold_until=record.hold_until,
        quarantine=record.quarantine,
        history=record.history,
        exits=tuple(exits),
        restart=restart,
        restart_waiting_for=restart_waiting_for,
    )
    if progress is None:
        return report
    return msgspec.structs.replace(
        report,
        target=progress.target.version,
        step=progress.step.value,
        step_since=progress.since,
        deadline=progress.deadline,
        pausing=progress.pausing,
        error=progress.error[:_MAX_TEXT],
        waiting_for=tuple(waiting_for) if progress.step is Step.WAIT else (),
    )


def problems_of(errors: Iterable[ConfigError]) -> tuple[Problem, ...]:
    """Return the problems of settings for a report; those beyond MAX_PROBLEMS are counted in the last entry."""
    problems = [Problem(error.path[:_MAX_TEXT], error.reason[:_MAX_TEXT], error.remedy[:_MAX_TEXT]) for error in errors]
    rest = len(problems) - MAX_PROBLEMS
    return (*problems[:MAX_PROBLEMS], Problem("", f"and {rest} further problems")) if rest > 0 else tuple(problems)


def encode(report: Report) -> bytes:
    """Return the report as JSON of at most MAX_BYTES: if necessary, without its oldest outcomes, exits and problems.

    Long texts are cut, and characters that cannot be encoded are replaced. ValueError if it still is too large.
    """
    while len(data := msgspec.json.encode(_clipped(msgspec.to_builtins(report)))) > MAX_BYTES:
        smaller = msgspec.structs.replace(
            report,
            agent=_shortened(report.agent),
            server=_shortened(report.server),
            problems=report.problems[: len(report.problems) // 2],
        )
        if smaller == report:
            raise ValueError(f"a report of {len(data)} bytes cannot be shortened")
        report = smaller
    return data


def _clipped(value: Any, limit: int = _MAX_TEXT) -> Any:
    if isinstance(value, str):
        return value[:limit].encode(errors="replace").decode()
    if isinstance(value, dict):
        return {key: _clipped(item, _MAX_WORD if key in _WORDS else _MAX_TEXT) for key, item in value.items()}
    return [_clipped(item) for item in value] if isinstance(value, list | tuple) else value


def _shortened(report: ProgramReport) -> ProgramReport:
    return msgspec.structs.replace(
        report,
        quarantine=report.quarantine[(len(report.quarantine) + 1) // 2 :],
        history=report.history[(len(report.history) + 1) // 2 :],
        exits=report.exits[(len(report.exits) + 1) // 2 :],
    )
