"""What RobotService answers: one dataclass for each published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from schema.geometry import Geometry, PoseInFrame
from schema.names import API, ResourceName


@dataclass(frozen=True, slots=True)
class Name:
    """A resource's name in four parts; `name` carries the remote prefixes."""

    namespace: str = ""
    type: str = ""
    subtype: str = ""
    name: str = ""

    @classmethod
    def of(cls, name: ResourceName) -> Name:
        """The parts of `name`."""
        return cls(name.api.namespace, name.api.type, name.api.subtype, name.short)

    @classmethod
    def of_api(cls, api: API) -> Name:
        """An API alone, without a name."""
        return cls(api.namespace, api.type, api.subtype)

    @property
    def full(self) -> str:
        """As one word: rdk:component:motor/left."""
        return f"{self.namespace}:{self.type}:{self.subtype}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResourceRPCSubtype:
    """An API that this machine offers, and the protobuf service that speaks for it."""

    subtype: Name
    proto_service: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One call in progress."""

    id: str
    method: str
    started: datetime
    arguments: Mapping[str, Any] = field(default_factory=dict)
    session_id: str | None = None


class PeerConnectionType(IntEnum):
    """How a client is connected."""

    UNSPECIFIED = 0
    GRPC = 1
    WEBRTC = 2


@dataclass(frozen=True, slots=True)
class PeerConnectionInfo:
    """Where a client is connected from."""

    type: PeerConnectionType = PeerConnectionType.GRPC
    remote_address: str | None = None
    local_address: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One client session."""

    id: str
    peer_connection_info: PeerConnectionInfo | None = None


@dataclass(frozen=True, slots=True)
class StartSessionResponse:
    """The session's id and how long the client may be silent."""

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
    """A local port that clients may reach."""

    port: int
    connection_timeout: timedelta


@dataclass(frozen=True, slots=True)
class StopExtraParameters:
    """Additional arguments for stopping one resource."""

    name: Name
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One message that somebody else logged."""

    host: str = ""
    level: str = ""
    time: datetime | None = None
    logger_name: str = ""
    message: str = ""
    caller: Mapping[str, Any] = field(default_factory=dict)
    stack: str = ""
    fields: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Transform:
    """A frame: `pose_in_observer_frame` names its parent and says where it stands in it."""

    reference_frame: str
    pose_in_observer_frame: PoseInFrame
    physical_object: Geometry | None = None
    uuid: bytes = b""
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FrameSystemConfig:
    """One part of the frame system."""

    frame: Transform
    kinematics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GetVersionResponse:
    """Which server this is."""

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
    """How far the machine is; the wire has no word for stopping."""

    UNSPECIFIED = 0
    INITIALIZING = 1
    RUNNING = 2


class ResourceState(IntEnum):
    """State of one resource; the order is the wire's."""

    UNSPECIFIED = 0
    UNCONFIGURED = 1
    CONFIGURING = 2
    READY = 3
    REMOVING = 4
    UNHEALTHY = 5


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """One configured resource."""

    name: Name
    state: ResourceState
    last_updated: datetime
    revision: str
    error: str


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """The configuration in force."""

    revision: str
    last_updated: datetime | None


class ModuleState(IntEnum):
    """State of one module; the order is the wire's."""

    UNSPECIFIED = 0
    PENDING = 1
    STARTING = 2
    READY = 3
    UNHEALTHY = 4
    CLOSING = 5


@dataclass(frozen=True, slots=True)
class ModuleStatus:
    """One configured module."""

    module_name: str
    state: ModuleState
    last_updated: datetime
    error: str
    consecutive_failures: int


@dataclass(frozen=True, slots=True)
class JobStatus:
    """When the newest runs of a job began."""

    job_name: str
    recent_successful_runs: list[datetime]
    recent_failed_runs: list[datetime]


@dataclass(frozen=True, slots=True)
class GetMachineStatusResponse:
    """The machine at a glance."""

    resources: list[ResourceStatus]
    config: ConfigStatus
    state: MachineState
    job_statuses: list[JobStatus] = field(default_factory=list)
    modules: list[ModuleStatus] = field(default_factory=list)
