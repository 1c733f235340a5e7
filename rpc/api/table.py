"""Table of protobuf services and their APIs, with information that descriptors lack. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rpc.api import cloud_v1, own
from schema import API, ErrorKind, MachineError

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor


@dataclass(frozen=True, slots=True)
class ApiEntry:
    """Protobuf service: full name, module of its messages (see `messages.load`), and API of a resource service.

    A service of a module's own API has a descriptor instead of a module; one of `rpc.api.cloud_v1` or
    `rpc.api.own` has neither.
    """

    service: str
    module: str
    api: API | None = None
    descriptor: ServiceDescriptor | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Streamed:
    """Mapping of the requests of a client-streaming RPC to the arguments of one call.

    Arguments are the fields of `init` (a message in the first request, or "") and the other fields of the first
    request. The argument `argument` iterates over the field `item` of all requests. If `struct` names a Struct field,
    its value in a later request is also an item, as a mapping. If `item` is "", the argument iterates over the requests
    themselves, as messages, and the method is called before the first one arrives.
    """

    init: str
    item: str
    argument: str
    struct: str = ""


def _entry(kind: str, subtype: str, stub: str, file: str = "") -> ApiEntry:
    folder = subtype.replace("_", "")
    module = f"{kind}.{folder}.v1.{file or folder}_pb2"
    return ApiEntry(f"viam.{kind}.{folder}.v1.{stub}Service", module, API("rdk", kind, subtype))


_APIS: Final[dict[API, ApiEntry]] = {
    entry.api: entry
    for entry in (
        _entry("component", "arm", "Arm"),
        _entry("component", "audio_in", "AudioIn"),
        _entry("component", "audio_out", "AudioOut"),
        _entry("component", "base", "Base"),
        _entry("component", "board", "Board"),
        _entry("component", "button", "Button"),
        _entry("component", "camera", "Camera"),
        _entry("component", "encoder", "Encoder"),
        _entry("component", "gantry", "Gantry"),
        _entry("component", "generic", "Generic"),
        _entry("component", "gripper", "Gripper"),
        _entry("component", "input_controller", "InputController", "input_controller"),
        _entry("component", "motor", "Motor"),
        _entry("component", "movement_sensor", "MovementSensor"),
        _entry("component", "pose_tracker", "PoseTracker", "pose_tracker"),
        _entry("component", "power_sensor", "PowerSensor"),
        _entry("component", "sensor", "Sensor"),
        _entry("component", "servo", "Servo"),
        _entry("component", "switch", "Switch"),
        ApiEntry(own.REMOTE_CONTROL, "", API("rdk", "service", "base_remote_control")),
        _entry("service", "data_manager", "DataManager", "data_manager"),
        _entry("service", "discovery", "Discovery"),
        _entry("service", "generic", "Generic"),
        _entry("service", "mlmodel", "MLModel"),
        _entry("service", "motion", "Motion"),
        _entry("service", "navigation", "Navigation"),
        _entry("service", "sensors", "Sensors"),
        _entry("service", "shell", "Shell"),
        _entry("service", "slam", "SLAM"),
        _entry("service", "video", "Video"),
        _entry("service", "vision", "Vision"),
        _entry("service", "world_state_store", "WorldStateStore", "world_state_store"),
    )
    if entry.api is not None
}

APIS: Final[Mapping[API, ApiEntry]] = MappingProxyType(_APIS)
"""All published resource APIs, and those added with `add_api`."""

_SERVICES: Final[dict[str, ApiEntry]] = {entry.service: entry for entry in APIS.values()} | {
    entry.service: entry
    for entry in (
        ApiEntry("viam.robot.v1.RobotService", "robot.v1.robot_pb2"),
        ApiEntry("proto.rpc.v1.AuthService", "proto.rpc.v1.auth_pb2"),
        ApiEntry("proto.rpc.v1.ExternalAuthService", "proto.rpc.v1.auth_pb2"),
        ApiEntry("proto.rpc.webrtc.v1.SignalingService", "proto.rpc.webrtc.v1.signaling_pb2"),
        ApiEntry("proto.stream.v1.StreamService", "stream.v1.stream_pb2"),
        ApiEntry("viam.app.v1.AppService", "app.v1.app_pb2"),
        ApiEntry("viam.app.v1.RobotService", "app.v1.robot_pb2"),
        ApiEntry("viam.app.agent.v1.AgentDeviceService", "app.agent.v1.agent_pb2"),
        ApiEntry("viam.app.data.v1.DataService", "app.data.v1.data_pb2"),
        ApiEntry("viam.app.dataset.v1.DatasetService", "app.dataset.v1.dataset_pb2"),
        ApiEntry("viam.app.datasync.v1.DataSyncService", "app.datasync.v1.data_sync_pb2"),
        ApiEntry("viam.app.mltraining.v1.MLTrainingService", "app.mltraining.v1.ml_training_pb2"),
        ApiEntry("viam.app.packages.v1.PackageService", "app.packages.v1.packages_pb2"),
        ApiEntry("viam.module.v1.ModuleService", "module.v1.module_pb2"),
        ApiEntry("viam.provisioning.v1.ProvisioningService", "provisioning.v1.provisioning_pb2"),
        *(ApiEntry(service, "") for service in cloud_v1.SERVICES),
    )
}

SERVICES: Final[Mapping[str, ApiEntry]] = MappingProxyType(_SERVICES)
"""All services by full name: those of APIS, the published machine-wide ones, and those of `rpc.api.cloud_v1`."""

MONITORED: Final = "viam.common.v1.safety_heartbeat_monitored"
"""Option of RPCs that move something and must be stopped when the session of their caller expires."""

ALSO_MONITORED: Final = frozenset({"viam.component.inputcontroller.v1.InputControllerService.TriggerEvent"})
"""RPCs without that option that are treated as if they had it: what they trigger may drive a base."""

STREAMED: Final[Mapping[str, Streamed]] = MappingProxyType(
    {
        "proto.rpc.webrtc.v1.SignalingService.Answer": Streamed("", "", "answers"),
        "viam.app.datasync.v1.DataSyncService.FileUpload": Streamed("metadata", "file_contents", "contents"),
        "viam.app.datasync.v1.DataSyncService.StreamingDataCaptureUpload": Streamed("metadata", "data", "pieces"),
        "viam.app.packages.v1.PackageService.CreatePackage": Streamed("info", "contents", "pieces"),
        "viam.app.v1.AppService.UploadModuleFile": Streamed("module_file_info", "file", "pieces"),
        "viam.component.arm.v1.ArmService.MoveThroughJointPositionsStreamed": Streamed("init", "batch", "batches"),
        "viam.component.audioout.v1.AudioOutService.PlayStream": Streamed("init", "audio_chunk", "audio_chunks"),
        "viam.robot.v1.RobotService.Tunnel": Streamed("", "data", "data"),
        "viam.service.motion.v1.MotionService.TempStreamArmJointPositions": Streamed("init", "targets", "targets"),
        "viam.service.shell.v1.ShellService.CopyFilesFromMachine": Streamed("metadata", "ack_last_file", "acks"),
        "viam.service.shell.v1.ShellService.CopyFilesToMachine": Streamed("metadata", "file_data", "files"),
        "viam.service.shell.v1.ShellService.Shell": Streamed("", "data_in", "data_in", "extra"),
    }
)
"""Client-streaming RPCs by full name."""


def add_api(api: API, service: ServiceDescriptor) -> None:
    """Register an unpublished API and its service in this process.

    Raises MachineError (EXISTS) if the API or the service is already registered with another one.
    """
    entry = ApiEntry(service.full_name, "", api, service)
    for registered in (_APIS.get(api), _SERVICES.get(entry.service)):
        if registered is not None and registered != entry:
            raise MachineError(
                f"{registered.service} is already registered for {registered.api}", kind=ErrorKind.EXISTS
            )
    _APIS[api] = _SERVICES[entry.service] = entry
