"""Format of the reports of agents: what is accepted, and its summary for lists of machines. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from cloud.domain.machines.reported import PROBLEMS, ROLLED_BACK, UPDATING, VERSION_PROBLEMS, WAITING
from cloud.values.limits import AGENT_REPORT
from schema import ErrorKind, MachineError, version_form
from uplink.releases import STABLE

FORMAT: Final = 1
"""The format that is read; see agent.control.report.FORMAT."""

Word = Annotated[str, Meta(max_length=300)]
Text = Annotated[str, Meta(max_length=2000)]

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
KEPT: Final = "the machine keeps the version that it runs"
"""What becomes of a version that cannot be used."""

_FORMS: Final = 'write a string: stable, dev, a semantic version such as "1.2.3", or an https:// or file:/// URL'
_FAILURES: Final = frozenset({"rolled_back", "rejected"})


class Waiting(Struct, frozen=True, omit_defaults=True):
    """Something that an update or restart waits for."""

    reason: Text
    since: float


class ReportedProblem(Struct, frozen=True, omit_defaults=True):
    """Something that is wrong, where, and what to do."""

    path: Text
    message: Text
    remedy: Text = ""


class Exit(Struct, frozen=True, omit_defaults=True):
    """An end of a program that was not requested."""

    time: float
    reason: Text
    ran: float


class Quarantined(Struct, frozen=True, omit_defaults=True):
    """A release that is not installed again by itself."""

    sha256: Word
    version: Word
    reason: Text
    time: float


class AgentUpdateOutcome(Struct, frozen=True, omit_defaults=True):
    """How an update ended."""

    version_to: Word
    sha256: Word
    result: Word
    ended: float
    version_from: Word = ""
    reason: Text = ""
    began: float = 0.0


class Program(Struct, frozen=True, omit_defaults=True):
    """State of a program; see agent.control.report.ProgramReport. Times are seconds since 1970."""

    version: Word = ""
    sha256: Word = ""
    running: bool = False
    since: float = 0.0
    serving: bool = False
    previous: Word = ""
    target: Word = ""
    step: Word = ""
    step_since: float = 0.0
    deadline: float = 0.0
    pausing: bool = False
    error: Text = ""
    waiting_for: tuple[Waiting, ...] = ()
    restart: Waiting | None = None
    restart_waiting_for: tuple[Waiting, ...] = ()
    hold_until: float = 0.0
    kept: Text = ""
    quarantine: tuple[Quarantined, ...] = ()
    history: tuple[AgentUpdateOutcome, ...] = ()
    exits: tuple[Exit, ...] = ()


class System(Struct, frozen=True, omit_defaults=True):
    """What was done to the operating system."""

    files: tuple[Text, ...] = ()


class UnusedNetwork(Struct, frozen=True, omit_defaults=True):
    """A network that is not used, and why."""

    network: Text
    reason: Text
    remedy: Text = ""


class Interface(Struct, frozen=True, omit_defaults=True):
    """A network interface, and what it is used for."""

    name: Word
    manager: Word = ""
    network: Text = ""
    addresses: tuple[Word, ...] = ()
    state: Text = ""
    remedy: Text = ""
    unused: tuple[UnusedNetwork, ...] = ()


class DeviceNetwork(Struct, frozen=True, omit_defaults=True):
    """The network of a device; see agent.control.report.NetworkReport."""

    mode: Word = ""
    next_step: Text = ""
    interfaces: tuple[Interface, ...] = ()
    unused: tuple[UnusedNetwork, ...] = ()


class AgentPart(Struct, frozen=True, omit_defaults=True):
    """State of a part of the agent; see agent.control.report.PartReport."""

    name: Word
    state: Word
    reason: Text = ""
    since: float = 0.0


class Report(Struct, frozen=True, omit_defaults=True):
    """Report of an agent. Unknown fields are dropped, so that newer agents can add some."""

    time: float
    format: int
    agent: Program = Program()
    server: Program = Program()
    offline: Word = ""
    disabled: bool = False
    problems: tuple[ReportedProblem, ...] = ()
    system: System = System()
    network: DeviceNetwork | None = None
    parts: tuple[AgentPart, ...] = ()


class _Header(Struct, frozen=True):
    format: int


def decode(data: bytes) -> Report:
    """Return a report. INVALID for anything else, for another format, and if it is too large.

    Control characters and those that change the direction of text are replaced.
    """
    AGENT_REPORT.check(len(data), "the report")
    try:
        if (sent := msgspec.json.decode(data, type=_Header).format) != FORMAT:
            raise MachineError(
                f"the report has format {sent}, but this cloud reads format {FORMAT}",
                kind=ErrorKind.INVALID,
                remedy="update machine-cloud",
            )
        return msgspec.convert(_cleaned(msgspec.json.decode(data)), Report)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MachineError(f"the report is not valid: {error}", kind=ErrorKind.INVALID) from None


def report_of(stored: str) -> Report | None:
    """Return a stored report; None if it has a format that is not read any more."""
    try:
        return msgspec.json.decode(stored, type=Report)
    except msgspec.MsgspecError:
        return None


def summary(report: Report) -> dict[str, Any]:
    """Return what lists of machines show: versions, targets, and the states of the agent."""
    programs = (report.agent, report.server)
    states = {
        UPDATING: any(program.step for program in programs),
        WAITING: any(program.waiting_for or program.restart for program in programs),
        ROLLED_BACK: any(program.history and program.history[-1].result in _FAILURES for program in programs),
        PROBLEMS: bool(report.problems),
    }
    return {
        "agent": {"version": report.agent.version, "target": report.agent.target},
        "server": {"version": report.server.version, "target": report.server.target},
        "states": [name for name, holds in states.items() if holds],
    }


def version_problems(part: Mapping[str, Any]) -> tuple[ReportedProblem, ...]:
    """Return the problems of `version_control` that were found at the last call of the agent."""
    return msgspec.convert(part.get(VERSION_PROBLEMS, ()), tuple[ReportedProblem, ...])


def wanted_version(control: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, str, ReportedProblem | None]:
    """Return the version that `version_control` names with the first of these keys, its path, and what is wrong.

    The version is `stable` without a key. It is empty with a problem: then nothing is to be changed.
    """
    for name in names:
        value = control.get(name)
        if value is None:
            continue
        path = f"agent.version_control.{name}"
        if isinstance(value, str) and version_form(value) is not None:
            return value, path, None
        kind = "text" if isinstance(value, str) else f"a {type(value).__name__}"
        return "", path, ReportedProblem(path, f"{str(value)[:100]!r} ({kind}) is not a version; {KEPT}", _FORMS)
    return STABLE, f"agent.version_control.{names[0]}", None


def moment(seconds: float) -> datetime | None:
    """Return the time for a number of a report; None if it is 0 or outside the range of dates."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (OverflowError, ValueError, OSError):
        return None


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _CONTROLS.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {key: _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value
