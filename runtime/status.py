"""What one machine-server shows of itself: plain frozen data, the same for the status page, the command line and RPC.

Everything here is JSON-ready through `msgspec.to_builtins`; times are aware datetimes in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


class MachineState(Enum):
    """How far the machine is: the words of the wire, and `stopping` for the way out."""

    INITIALIZING = "initializing"  # the first configuration is still being applied
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """One configured resource, whatever its state."""

    name: str  # full: rdk:component:motor/left
    api: str
    model: str  # empty when the entry could not be read so far
    state: str  # unconfigured, configuring, ready, unhealthy, removing
    reason: str  # why it is not ready; empty when it is
    since: datetime  # when it entered this state
    revision: str  # revision of the configuration that it was built from
    restarts: int  # how often it was started again
    dependencies: tuple[str, ...]  # node names it needs or uses
    dependents: tuple[str, ...]  # node names that need or use it
    calls: int  # method calls in flight
    tasks: tuple[str, ...] = ()  # what runs inside, while it is being started or stopped


@dataclass(frozen=True, slots=True)
class NodeView:
    """One part of the server itself (`internal/...`)."""

    name: str
    state: str
    reason: str
    since: datetime
    restarts: int
    dependencies: tuple[str, ...]
    dependents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One mistake in the configuration document, with where it stands and what would be right."""

    path: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """The configuration that is in force, and what keeps a newer one out."""

    source: str  # where it comes from, such as a file name
    revision: str
    last_updated: datetime | None  # when it came into force; None before the first
    problems: tuple[ConfigProblem, ...] = ()
    rejected: str = ""  # why the newest document as a whole was not taken; empty when it was
    pending: str = ""  # why the newest document waits (maintenance); empty when it does not


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """One client session and what it controls."""

    id: str
    owner: str  # authenticated entity; empty on an open server
    peer: str  # address of the client; empty if unknown
    resources: tuple[str, ...]  # full names it last commanded
    expires_in: float  # seconds until it expires unless the client is heard


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """One call in progress."""

    id: str
    method: str
    resource: str  # full name; empty for calls to the machine itself
    started: datetime
    session: str


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job and how its newest runs went; times are when they began, oldest first."""

    name: str
    schedule: str
    resource: str
    method: str
    running: bool
    next_run: datetime | None  # None while it runs, and for a continuous one
    succeeded: tuple[datetime, ...]
    failed: tuple[datetime, ...]
    last_error: str  # of the newest failure; empty without one


@dataclass(frozen=True, slots=True)
class ModuleStatus:
    """One configured module."""

    name: str
    state: str  # pending, starting, ready, unhealthy, closing: the words of the wire
    reason: str  # why it is not ready; empty when it is
    since: datetime  # when it entered this state
    node: str  # the part of the server that runs it
    consecutive_failures: int  # since it was ready last
    models: tuple[str, ...]  # what it offers, or offered last; in order


@dataclass(frozen=True, slots=True)
class DownloadStatus:
    """A package on its way. `done` and `size` in bytes; `size` is 0 where the cloud does not tell it."""

    name: str  # as its entry of the configuration calls it
    version: str
    done: int
    size: int


@dataclass(frozen=True, slots=True)
class MachineStatus:
    """Everything a person or a supervisor wants to know at a glance."""

    host: str
    version: str
    state: MachineState
    started: datetime
    restart_allowed: bool  # as last decided; not while the configuration is being applied
    config: ConfigStatus
    resources: tuple[ResourceStatus, ...]  # in order of name
    internal: tuple[NodeView, ...]  # in order of name
    sessions: tuple[SessionStatus, ...]
    operations: tuple[OperationStatus, ...]
    addresses: tuple[str, ...]  # where the RPC port listens: host:port
    secure: bool  # whether that port speaks TLS
    jobs: tuple[JobStatus, ...] = ()  # in the order of the configuration
    modules: tuple[ModuleStatus, ...] = ()  # in the order of the configuration
    maintenance: str = ""  # what the maintenance window said last, and why; empty without one
    downloads: tuple[DownloadStatus, ...] = ()  # in the order in which they began
