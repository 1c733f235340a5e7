"""Report of an agent: what runs, which update is in progress, what it waits for, and what is wrong. Pure.

The same report is the answer of `machine agent status`. All times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from agent.update.record import QuarantinedRelease, UpdateOutcome, UpdateRecord, UpdateStep
from agent.update.steps import release_to_start
from schema import ConfigError

FORMAT: Final = 1
"""The format of the report; increased by a change that a reader of the former format would misread."""

MAX_BYTES: Final = 64 * 1024
"""Size of a report that the cloud accepts."""

MAX_PROBLEMS: Final = 50
MAX_INTERFACES: Final = 16
MAX_ADDRESSES: Final = 8
MAX_UNUSED: Final = 20
"""Networks of an interface that are listed as not used."""
CLOCK_NOISE: Final = 3.0
"""Seconds by which the start of the same process may differ in two reports. A restart takes longer."""
_MAX_TEXT: Final = 500  # characters of a reason or message
_MAX_WORD: Final = 300  # characters of any other text; the cloud refuses longer ones
_WORDS: Final = frozenset({"version", "previous", "target", "version_from", "version_to", "offline"})


class WaitReport(msgspec.Struct, frozen=True):
    """Something that an update or restart waits for."""

    reason: str
    since: float  # when it became a reason; when the step began is in `step_since`


def waits(before: Iterable[WaitReport], reasons: Iterable[str], now: float) -> tuple[WaitReport, ...]:
    """Return what is waited for now: a reason that was one before keeps its time."""
    since = {waiting.reason: waiting.since for waiting in before}
    return tuple(WaitReport(reason, since.get(reason, now)) for reason in reasons)


class ProblemReport(msgspec.Struct, frozen=True):
    """Something that is wrong, where, and what to do. Contains no secrets."""

    path: str  # of a setting or file; empty if there is none
    message: str
    remedy: str = ""


class ExitReport(msgspec.Struct, frozen=True):
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
    waiting_for: tuple[WaitReport, ...] = ()
    restart: WaitReport | None = None  # a restart that waits for maintenance, and why it is needed
    restart_waiting_for: tuple[WaitReport, ...] = ()
    hold_until: float = 0.0
    kept: str = ""  # why no other version is installed although nothing is wrong
    quarantine: tuple[QuarantinedRelease, ...] = ()
    history: tuple[UpdateOutcome, ...] = ()  # the newest last
    exits: tuple[ExitReport, ...] = ()  # the newest last


class SystemReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the agent has done to the operating system."""

    files: tuple[str, ...] = ()  # files outside its own folder that the system configuration has written
    upgraded: float = 0.0  # end of the last upgrade of packages by the agent
    outcome: str = ""  # of this upgrade
    waiting: WaitReport | None = None  # an upgrade of packages, or a reboot for it


class UnusedNetworkReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A network that is not used, and why."""

    network: str  # label
    reason: str
    remedy: str = ""


class InterfaceReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A network interface, and what it is used for."""

    name: str
    manager: str = ""  # program that configures it
    network: str = ""  # label of the network that was chosen
    addresses: tuple[str, ...] = ()
    state: str = ""
    remedy: str = ""
    unused: tuple[UnusedNetworkReport, ...] = ()


class NetworkReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The network of the device, as `machine agent network explain` shows it. Contains no secrets."""

    mode: str = ""  # of provisioning
    next_step: str = ""  # what happens next, and when
    interfaces: tuple[InterfaceReport, ...] = ()
    unused: tuple[UnusedNetworkReport, ...] = ()  # networks that no interface can use


class PartReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """State of a part of the agent: `state` is that of its node, `unhealthy` from a failure until it runs again."""

    name: str
    state: str
    reason: str = ""  # why it is in this state
    since: float = 0.0  # of the first failure, if it has failed


class AgentReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """State of the agent."""

    time: float
    agent: ProgramReport
    server: ProgramReport
    offline: str = ""  # why the cloud cannot be asked, when the report was made
    disabled: bool = False  # machine-server is switched off by a setting
    problems: tuple[ProblemReport, ...] = ()
    system: SystemReport = SystemReport()
    network: NetworkReport | None = None  # None: the agent does not manage the network
    parts: tuple[PartReport, ...] = ()
    format: int = msgspec.field(default_factory=lambda: FORMAT)  # a factory, so that it is never omitted


def program_report(
    record: UpdateRecord | None,
    *,
    running: bool = False,
    since: float = 0.0,
    serving: bool = False,
    waiting_for: Iterable[WaitReport] = (),
    kept: str = "",
    exits: Sequence[ExitReport] = (),
    restart: WaitReport | None = None,
    restart_waiting_for: tuple[WaitReport, ...] = (),
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
        kept=kept[:_MAX_TEXT] if progress is None else "",
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
        waiting_for=tuple(waiting_for) if progress.step is UpdateStep.WAIT else (),
    )


def network_report(mode: str, explanation: Mapping[str, Any], addresses: Mapping[str, Sequence[str]]) -> NetworkReport:
    """Return the report of the network from its explanation and the addresses of each interface, bounded in size."""
    return NetworkReport(
        mode=mode,
        next_step=explanation["next_step"],
        interfaces=tuple(
            InterfaceReport(
                name=entry["interface"],
                manager=entry["manager"],
                network=entry["network"],
                addresses=tuple(addresses.get(entry["interface"], ()))[:MAX_ADDRESSES],
                state=entry["state"]["text"],
                remedy=entry["state"]["remedy"],
                unused=_unused(entry["not_used"]),
            )
            for entry in explanation["interfaces"][:MAX_INTERFACES]
        ),
        unused=_unused(explanation["not_used"]),
    )


def _unused(entries: Sequence[Mapping[str, Any]]) -> tuple[UnusedNetworkReport, ...]:
    return tuple(
        UnusedNetworkReport(entry["network"], entry["why"]["text"], entry["why"]["remedy"])
        for entry in entries[:MAX_UNUSED]
    )


def essence(report: AgentReport, before: AgentReport | None = None) -> AgentReport:
    """Return the report without what changes with the time alone, for comparison with `before`, an earlier essence.

    The start of a process is what two clocks say about its age: it differs by some microseconds each time, and by more
    while a clock is adjusted.
    """
    network = report.network
    if network is not None:
        network = msgspec.structs.replace(network, next_step="")
    agent, server = report.agent, report.server
    if before is not None:
        agent, server = _steady(agent, before.agent), _steady(server, before.server)
    return msgspec.structs.replace(report, time=0.0, offline="", network=network, agent=agent, server=server)


def _steady(program: ProgramReport, before: ProgramReport) -> ProgramReport:
    """Return the report of a program with the times of `before` if they are the same."""
    if abs(program.since - before.since) < CLOCK_NOISE:
        program = msgspec.structs.replace(program, since=before.since)
    restart, earlier = program.restart, before.restart
    if restart is not None and earlier is not None:
        is_same = restart.reason == earlier.reason and abs(restart.since - earlier.since) < CLOCK_NOISE
        program = msgspec.structs.replace(program, restart=earlier if is_same else restart)
    return program


def problems_of(errors: Iterable[ConfigError]) -> tuple[ProblemReport, ...]:
    """Return the problems of settings for a report; those beyond MAX_PROBLEMS are counted in the last entry."""
    problems = [
        ProblemReport(error.path[:_MAX_TEXT], error.reason[:_MAX_TEXT], error.remedy[:_MAX_TEXT]) for error in errors
    ]
    rest = len(problems) - MAX_PROBLEMS
    return (
        (*problems[:MAX_PROBLEMS], ProblemReport("", f"and {rest} further problems")) if rest > 0 else tuple(problems)
    )


def encode(report: AgentReport) -> bytes:
    """Return the report as JSON of at most MAX_BYTES: if necessary, without its oldest outcomes, exits and problems.

    Long texts are cut, and characters that cannot be encoded are replaced. ValueError if it still is too large.
    """
    while len(data := msgspec.json.encode(_clipped(msgspec.to_builtins(report)))) > MAX_BYTES:
        smaller = msgspec.structs.replace(
            report,
            agent=_shortened(report.agent),
            server=_shortened(report.server),
            problems=report.problems[: len(report.problems) // 2],
            network=None,
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
