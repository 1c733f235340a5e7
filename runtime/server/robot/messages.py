"""Messages of RobotService: a dataclass for each published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from engine.geometry import SuppliedFrame
from schema import API, ResourceName


@dataclass(frozen=True, slots=True)
class Name:
    """A resource's name in four parts; `name` includes the prefixes of remotes."""

    namespace: str = ""
    type: str = ""
    subtype: str = ""
    name: str = ""

    @classmethod
    def of(cls, name: ResourceName) -> Name:
        """Return the parts of `name`."""
        return cls(name.api.namespace, name.api.type, name.api.subtype, name.short)

    @classmethod
    def of_api(cls, api: API) -> Name:
        """Return the parts of an API, without a name."""
        return cls(api.namespace, api.type, api.subtype)

    @property
    def full(self) -> str:
        """The full name, such as rdk:component:motor/left."""
        return f"{self.namespace}:{self.type}:{self.subtype}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResourceRPCSubtype:
    """An API that this machine offers, and its protobuf service."""

    subtype: Name
    proto_service: str


@dataclass(frozen=True, slots=True)
class Operation:
    """A call in progress."""

    id: str
    method: str
    started: datetime
    arguments: Mapping[str, Any] = field(default_factory=dict)
    session_id: str | None = None


class PeerConnectionType(IntEnum):
    """Type of a client's connection."""

    UNSPECIFIED = 0
    GRPC = 1
    WEBRTC = 2


@dataclass(frozen=True, slots=True)
class PeerConnectionInfo:
    """Type and addresses of a client's connection."""

    type: PeerConnectionType = PeerConnectionType.GRPC
    remote_address: str | None = None
    local_address: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A client session."""

    id: str
    peer_connection_info: PeerConnectionInfo | None = None


@dataclass(frozen=True, slots=True)
class StartSessionResponse:
    """The session's id, and the maximum time between heartbeats of the client."""

    id: str
    heartbeat_window: timedelta


@dataclass(frozen=True, slots=True)
class ModuleModel:
    """A model that a module offers."""

    module_name: str
    model: str
    api: str
    from_local_module: bool


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A local port that clients may connect to through the machine."""

    port: int
    connection_timeout: timedelta


@dataclass(frozen=True, slots=True)
class StopExtraParameters:
    """Additional arguments for stopping a resource."""

    name: Name
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log message from another program."""

    host: str = ""
    level: str = ""
    time: datetime | None = None
    logger_name: str = ""
    message: str = ""
    caller: Mapping[str, Any] = field(default_factory=dict)
    stack: str = ""
    fields: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FrameSystemConfig:
    """A part of the frame system."""

    frame: SuppliedFrame
    kinematics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GetVersionResponse:
    """Platform and versions of this server."""

    platform: str
    version: str
    api_version: str


@dataclass(frozen=True, slots=True)
class GetCloudMetadataResponse:
    """The ids of this machine in its cloud."""

    primary_org_id: str
    location_id: str
    machine_id: str
    machine_part_id: str


class MachineState(IntEnum):
    """State of the machine; the API has no value for stopping."""

    UNSPECIFIED = 0
    INITIALIZING = 1
    RUNNING = 2


class ResourceState(IntEnum):
    """State of a resource; the numbers are those of the API."""

    UNSPECIFIED = 0
    UNCONFIGURED = 1
    CONFIGURING = 2
    READY = 3
    REMOVING = 4
    UNHEALTHY = 5


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """A configured resource."""

    name: Name
    state: ResourceState
    last_updated: datetime
    revision: str
    error: str


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """The active configuration."""

    revision: str
    last_updated: datetime | None


class ModuleState(IntEnum):
    """State of a module; the numbers are those of the API."""

    UNSPECIFIED = 0
    PENDING = 1
    STARTING = 2
    READY = 3
    UNHEALTHY = 4
    CLOSING = 5


@dataclass(frozen=True, slots=True)
class ModuleStatus:
    """A configured module."""

    module_name: str
    state: ModuleState
    last_updated: datetime
    error: str
    consecutive_failures: int


@dataclass(frozen=True, slots=True)
class JobStatus:
    """Start times of the newest runs of a job."""

    job_name: str
    recent_successful_runs: list[datetime]
    recent_failed_runs: list[datetime]


@dataclass(frozen=True, slots=True)
class GetMachineStatusResponse:
    """Status of the machine."""

    resources: list[ResourceStatus]
    config: ConfigStatus
    state: MachineState
    job_statuses: list[JobStatus] = field(default_factory=list)
    modules: list[ModuleStatus] = field(default_factory=list)
