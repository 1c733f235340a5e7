"""Status of a machine-server: immutable data, shared by the status page, the command line and RPC.

`msgspec.to_builtins` converts it for JSON; times are aware datetimes in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


class MachineState(Enum):
    """State of the machine: the values of the wire, and `stopping` during shutdown."""

    INITIALIZING = "initializing"  # the first configuration is still being applied
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """A configured resource, in any state."""

    name: str  # full: rdk:component:motor/left
    api: str
    model: str  # empty if it could not be read from the entry
    state: str  # unconfigured, configuring, ready, unhealthy, removing
    reason: str  # why it is not ready; empty when it is
    since: datetime  # when it entered this state
    revision: str  # revision of the configuration from which it was built
    restarts: int  # number of restarts
    dependencies: tuple[str, ...]  # names of nodes that it requires or uses
    dependents: tuple[str, ...]  # names of nodes that require or use it
    calls: int  # method calls in progress
    tasks: tuple[str, ...] = ()  # its tasks, while it is starting or stopping


@dataclass(frozen=True, slots=True)
class NodeView:
    """A part of the server itself (`internal/...`)."""

    name: str
    state: str
    reason: str
    since: datetime
    restarts: int
    dependencies: tuple[str, ...]
    dependents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A mistake in the configuration document: its path, a message and a remedy."""

    path: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """The active configuration, and why a newer one is not applied."""

    source: str  # origin, such as a file name
    revision: str
    last_updated: datetime | None  # when it became active; None before the first
    problems: tuple[ConfigProblem, ...] = ()
    rejected: str = ""  # why the newest document as a whole was rejected; empty if it was accepted
    pending: str = ""  # why the newest document waits (maintenance); empty if it does not wait
    fetched: bool = True  # it was read from its source since the start; False while only a cached copy is used


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """A client session and the resources that it controls."""

    id: str
    owner: str  # authenticated entity; empty on a server without authentication
    peer: str  # address of the client; empty if unknown
    resources: tuple[str, ...]  # full names of resources that it commanded last
    expires_in: float  # seconds until it expires without a further heartbeat or command


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """A call in progress."""

    id: str
    method: str
    resource: str  # full name; empty for calls to the machine itself
    started: datetime
    session: str


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job and its newest runs; times are the starts of the runs, oldest first."""

    name: str
    schedule: str
    resource: str
    method: str
    running: bool
    next_run: datetime | None  # None while it runs, and for a continuous job
    succeeded: tuple[datetime, ...]
    failed: tuple[datetime, ...]
    last_error: str  # of the newest failure; empty if there is none


@dataclass(frozen=True, slots=True)
class ModuleStatus:
    """A configured module."""

    name: str
    state: str  # pending, starting, ready, unhealthy, closing: the values of the wire
    reason: str  # why it is not ready; empty when it is
    since: datetime  # when it entered this state
    node: str  # the part of the server that runs it
    consecutive_failures: int  # since it was last ready
    models: tuple[str, ...]  # that it offers, or offered last; in order


@dataclass(frozen=True, slots=True)
class DownloadStatus:
    """A package being downloaded. `done` and `size` are in bytes; `size` is 0 if the cloud does not report it."""

    name: str  # of its entry in the configuration
    version: str
    done: int
    size: int


@dataclass(frozen=True, slots=True)
class MachineStatus:
    """Status of a machine, for people and supervisors."""

    host: str
    version: str
    state: MachineState
    started: datetime
    restart_allowed: bool  # the last decision; False while the configuration is being applied
    config: ConfigStatus
    resources: tuple[ResourceStatus, ...]  # in order of name
    internal: tuple[NodeView, ...]  # in order of name
    sessions: tuple[SessionStatus, ...]
    operations: tuple[OperationStatus, ...]
    addresses: tuple[str, ...]  # where the RPC port listens: host:port
    secure: bool  # whether that port uses TLS
    jobs: tuple[JobStatus, ...] = ()  # in the order of the configuration
    modules: tuple[ModuleStatus, ...] = ()  # in the order of the configuration
    clock: str = ""  # how the clock was set last, since the start; empty without cron jobs, and if it was not set
    maintenance: str = ""  # last decision of the maintenance window, and the reason; empty without a window
    downloads: tuple[DownloadStatus, ...] = ()  # in the order of their start
    machine: str = ""  # its name in the cloud; empty without a cloud that names it
    page: str = ""  # URL of its page in that cloud; empty without

    @property
    def name(self) -> str:
        """Name of the machine for people: that in the cloud, or that of the computer."""
        return self.machine or self.host
