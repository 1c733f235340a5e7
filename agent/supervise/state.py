"""What is known about machine-server, and the interface of what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple, Protocol

import msgspec
import trio

KEPT_EXITS: Final = 10


class ServerExit(msgspec.Struct, frozen=True):
    """An end of machine-server that was not requested."""

    time: float  # seconds since 1970
    reason: str  # such as `exit code 1` or `killed by SIGKILL (out of memory)`
    ran: float  # seconds


class ServerProcess(NamedTuple):
    """A running machine-server. `environment` and `release` are empty if they cannot be read."""

    pid: int
    began: float  # seconds of Trio's clock: the computer's clock may be set while it runs
    release: str = ""  # SHA-256 of the release that the launcher has started
    environment: str = ""  # identifies the environment that it was started with


class ServerState(NamedTuple):
    """State of machine-server at one moment."""

    process: ServerProcess | None = None
    serving_since: float = 0.0  # seconds since 1970; 0 if it has not answered yet
    answering: bool = False  # it answered the last request
    disabled: bool = False  # it is kept stopped
    restart_needed: str = ""  # why it must be restarted before the settings apply to it, or empty
    exits: tuple[ServerExit, ...] = ()  # the newest last, at most KEPT_EXITS


class ServerPhase(Enum):
    """What machine-server does, as people see it."""

    DISABLED = "disabled"
    STOPPED = "stopped"
    STARTING = "starting"
    SERVING = "serving"
    SILENT = "silent"


def phase_of(state: ServerState) -> ServerPhase:
    """Return the phase of a state."""
    if state.process is None:
        return ServerPhase.DISABLED if state.disabled else ServerPhase.STOPPED
    if state.answering:
        return ServerPhase.SERVING
    return ServerPhase.SILENT if state.serving_since else ServerPhase.STARTING


PHASES: Final[Mapping[ServerPhase, tuple[str, Mapping[ServerPhase, str]]]] = {
    ServerPhase.DISABLED: ("kept stopped by `disable_viam_server`", {ServerPhase.STOPPED: "setting removed"}),
    ServerPhase.STOPPED: (
        "no process runs: before a start, during the pause after a crash, or while it is updated",
        {ServerPhase.STARTING: "start", ServerPhase.DISABLED: "setting"},
    ),
    ServerPhase.STARTING: (
        "a process runs, and has not answered yet",
        {ServerPhase.SERVING: "first answer", ServerPhase.STOPPED: "exit, stop, start timeout: kill"},
    ),
    ServerPhase.SERVING: (
        "it answered the last request",
        {
            ServerPhase.SILENT: "no answer", ServerPhase.STOPPED: "exit, stop",
            ServerPhase.STARTING: "restart by systemd",
        },
    ),
    ServerPhase.SILENT: (
        "it has answered before, but not the last request",
        {
            ServerPhase.SERVING: "answer", ServerPhase.STOPPED: "exit, stop, too many missing answers: kill",
            ServerPhase.STARTING: "restart by systemd",
        },
    ),
}  # fmt: skip
"""Each phase: what it means, and why another one follows."""


def mermaid() -> str:
    """Return the diagram of the phases for the documentation."""
    lines = ["stateDiagram-v2", f"    [*] --> {ServerPhase.STOPPED.value}"]
    for phase, (_, following) in PHASES.items():
        lines += [f"    {phase.value} --> {other.value}: {reason}" for other, reason in following.items()]
    return "\n".join(lines) + "\n"


Started = Callable[[ServerProcess], None]
Ended = Callable[[ServerExit], None]


class ServerBackend(Protocol):
    """Runs machine-server and restarts it, with increasing delays, whenever it exits without a request."""

    async def run(self, started: Started, ended: Ended, *, task_status: trio.TaskStatus[None]) -> None:
        """Report starts and ends until cancelled. A process that is running already is reported as started."""
        ...

    async def start(self) -> None:
        """Start it unless it runs. Returns before it serves. Raises MachineError."""
        ...

    async def stop(self) -> None:
        """End it with SIGTERM, after STOP_TIME with SIGKILL, and keep it stopped until `start`. Raises MachineError."""
        ...

    async def kill(self) -> None:
        """Kill it and its children; it is then restarted. Raises MachineError."""
        ...

    async def configure(self, environment: Mapping[str, str], *, disabled: bool) -> None:
        """Store the variables of the next start, and whether it may be started at boot without the agent.

        Raises OSError.
        """
        ...


STOP_TIME: Final = 120.0  # seconds between SIGTERM and SIGKILL; reference value
KILL_TIME: Final = 10.0  # seconds until a killed process must have ended; reference value


def died(status: int, *, out_of_memory: bool = False) -> str:
    """Return why a process ended, from its exit status, or the negative number of the signal that killed it."""
    import signal

    if status >= 0:
        return f"exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"killed by {name} (out of memory)" if out_of_memory else f"killed by {name}"
