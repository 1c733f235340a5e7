"""Protobuf package `machine.cloud.v1`: calls of machine-cloud that are not part of the published API.

The tables below are its only source. `service` builds the descriptors from them, so that protoc is not needed, neither
to build a wheel nor to run a checkout. `proto_text` writes them as a .proto file for clients in other languages, which
`make generate` keeps current.

Numbers of fields are part of the wire format: never change or reuse one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from rpc.api.cloud_v1_alerts import ALERT_MESSAGES
from rpc.api.cloud_v1_rollouts import ROLLOUT_MESSAGES, ROLLOUT_METHODS
from rpc.api.well_known import DURATION as _DURATION
from rpc.api.well_known import MAP as _MAP
from rpc.api.well_known import STRUCT as _STRUCT
from rpc.api.well_known import TIME as _TIME
from rpc.api.well_known import VALUE as _VALUE

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto

PACKAGE: Final = "machine.cloud.v1"
FILE: Final = "machine/cloud/v1/cloud.proto"
INVITATIONS: Final = f"{PACKAGE}.InvitationService"
HISTORY: Final = f"{PACKAGE}.HistoryService"
TRIGGERS: Final = f"{PACKAGE}.TriggerService"
RELEASES: Final = f"{PACKAGE}.ReleaseService"
AGENTS: Final = f"{PACKAGE}.AgentService"
HEALTH: Final = f"{PACKAGE}.HealthService"
FLEET: Final = f"{PACKAGE}.FleetService"
TRAINING: Final = f"{PACKAGE}.TrainingService"
ALERTS: Final = f"{PACKAGE}.AlertService"
ROLLOUTS: Final = f"{PACKAGE}.RolloutService"

_FILES: Final = tuple(f"google/protobuf/{name}.proto" for name in ("duration", "struct", "timestamp"))

MESSAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "Grant": ("string role = 1", "string kind = 2", "string subject = 3"),
    "Invite": (
        "string organization_id = 1",
        "string email = 2",
        f"{_TIME} created = 3",
        f"{_TIME} expires = 4",
        "string inviter_name = 5",
        "repeated Grant grants = 6",
        "string mail = 7",
        "string error = 8",
    ),
    "ListInvitesRequest": ("string organization_id = 1",),
    "ListInvitesResponse": ("repeated Invite invites = 1", "bool mails = 2"),
    "CreateInviteLinkRequest": ("string organization_id = 1", "string email = 2"),
    "CreateInviteLinkResponse": ("string link = 1",),
    # HistoryService
    "Revision": (
        "int32 revision = 1",
        f"{_TIME} saved = 2",
        "string author = 3",
        "string author_type = 4",
        "string author_id = 5",
        "string document_json = 6",
    ),
    "ListPartRevisionsRequest": ("string part_id = 1", "optional int32 before = 2", "int32 limit = 3"),
    "ListPartRevisionsResponse": ("repeated Revision revisions = 1",),
    "ListFragmentRevisionsRequest": ("string fragment_id = 1", "optional int32 before = 2", "int32 limit = 3"),
    "ListFragmentRevisionsResponse": ("repeated Revision revisions = 1",),
    # TriggerService
    "TriggerTarget": (
        "string type = 1",
        "string value = 2",
        "double seconds = 3",
        "bool signed = 4",
        f"{_TIME} until = 5",
        "string stopped = 6",
    ),
    "Trigger": (
        "string name = 1",
        "string event = 2",
        f"{_STRUCT} condition = 3",
        "string notes = 4",
        "repeated TriggerTarget targets = 5",
    ),
    "ListTriggersRequest": ("string part_id = 1",),
    "ListTriggersResponse": (
        "repeated Trigger triggers = 1",
        "repeated string problems = 2",
        "repeated string warnings = 3",
    ),
    "Finding": (
        "string path = 1",
        "string operator = 2",
        f"{_VALUE} value = 3",
        f"{_VALUE} right = 4",
        "bool holds = 5",
        "string reason = 6",
    ),
    "Explanation": ("bool fires = 1", "string reason = 2", "repeated Finding findings = 3"),
    "ExplainTriggerRequest": ("string part_id = 1", "string trigger = 2", f"{_STRUCT} reading = 3"),
    "ExplainTriggerResponse": (
        "Explanation explanation = 1",
        "repeated TriggerTarget targets = 2",
        f"{_STRUCT} reading = 3",
    ),
    "SendTestRequest": (
        "string part_id = 1",
        "string trigger = 2",
        "string value = 3",
        f"{_STRUCT} reading = 4",
    ),
    "SendTestResponse": ("repeated string delivery_ids = 1",),
    "StartTriggerRequest": ("string part_id = 1", "string trigger = 2"),
    "StartTriggerResponse": (),
    "Delivery": (
        "string id = 1",
        "int64 number = 2",
        "string trigger = 3",
        "string event = 4",
        "string type = 5",
        "string target = 6",
        "string state = 7",
        "int32 attempts = 8",
        f"{_TIME} created = 9",
        f"{_TIME} next = 10",
        "bool test = 11",
        f"{_MAP} about = 12",
    ),
    "ListDeliveriesRequest": (
        "string part_id = 1",
        "string trigger = 2",
        "string state = 3",
        "optional int64 before = 4",
        "int32 limit = 5",
    ),
    "ListDeliveriesResponse": ("repeated Delivery deliveries = 1",),
    "Attempt": (
        "int32 number = 1",
        f"{_TIME} started = 2",
        f"{_DURATION} duration = 3",
        "int32 status = 4",
        "string error = 5",
    ),
    "GetDeliveryRequest": ("string part_id = 1", "string delivery_id = 2"),
    "GetDeliveryResponse": (
        "Delivery delivery = 1",
        f"{_MAP} headers = 2",
        "bytes body = 3",
        "repeated Attempt attempts = 4",
    ),
    "ReplayDeliveryRequest": ("string part_id = 1", "string delivery_id = 2"),
    "ReplayDeliveryResponse": (),
    # ReleaseService
    "ReleaseKey": ("string role = 1", "string keyid = 2", "string public = 3"),
    "ReleaseMetadata": ("string role = 1", "int64 version = 2", f"{_TIME} expires = 3"),
    "ReleaseTarget": (
        "string program = 1",
        "string version = 2",
        "string platform = 3",
        "repeated string channels = 4",
        "string sha256 = 5",
        "int64 size = 6",
    ),
    "Rollout": (
        "string program = 1",
        "string version = 2",
        "double percent = 3",
        "repeated string tags = 4",
        "repeated string location_ids = 5",
        "int32 stop_after = 6",
        "string state = 7",
        "string reason = 8",
        f"{_TIME} created = 9",
        f"{_TIME} changed = 10",
        "int32 rolled_back = 11",
        "bool staged = 12",
    ),
    "RolloutMachine": (
        "string part_id = 1",
        "string part = 2",
        "string machine = 3",
        "string location = 4",
        "string state = 5",
        "string version = 6",
        "string reason = 7",
        f"{_TIME} since = 8",
    ),
    "ListReleasesRequest": ("string organization_id = 1",),
    "ListReleasesResponse": (
        "repeated ReleaseMetadata metadata = 1",
        "repeated ReleaseTarget targets = 2",
        "repeated Rollout rollouts = 3",
        "string keys_held_by = 4",
    ),
    "ReleaseImportNote": ("string platform = 1", "string reason = 2", "string remedy = 3"),
    "ReleaseImport": (
        "string state = 1",
        "string step = 2",
        "int64 done = 3",
        "int64 total = 4",
        "repeated ReleaseImportNote notes = 5",
        "int64 number = 6",
    ),
    "StartReleaseImportRequest": ("string organization_id = 1",),
    "StartReleaseImportResponse": ("ReleaseImport release_import = 1",),
    "WaitForReleaseImportRequest": ("string organization_id = 1", "int64 number = 2"),
    "WaitForReleaseImportResponse": ("ReleaseImport release_import = 1",),
    "RotateReleaseKeysRequest": ("string organization_id = 1",),
    "RotateReleaseKeysResponse": ("repeated ReleaseMetadata metadata = 1",),
    "SetReleaseChannelsRequest": (
        "string organization_id = 1",
        "string program = 2",
        "string version = 3",
        "repeated string channels = 4",
    ),
    "SetReleaseChannelsResponse": ("repeated ReleaseTarget targets = 1",),
    "CreateReleaseKeysRequest": ("string organization_id = 1",),
    "CreateReleaseKeysResponse": ("repeated ReleaseKey keys = 1",),
    "GetReleaseMetadataRequest": ("string organization_id = 1", "string name = 2"),
    "GetReleaseMetadataResponse": ("bytes content = 1",),
    "UpdateReleaseMetadataRequest": ("string organization_id = 1", "bytes root_json = 2", "bytes targets_json = 3"),
    "UpdateReleaseMetadataResponse": ("repeated ReleaseMetadata metadata = 1",),
    "HasReleaseFileRequest": ("string organization_id = 1", "string sha256 = 2"),
    "HasReleaseFileResponse": ("bool stored = 1",),
    "StartRolloutRequest": (
        "string organization_id = 1",
        "string program = 2",
        "string version = 3",
        "optional double percent = 4",
        "repeated string tags = 5",
        "repeated string location_ids = 6",
        "optional int32 stop_after = 7",
    ),
    "StartRolloutResponse": ("Rollout rollout = 1",),
    "SetRolloutStateRequest": (
        "string organization_id = 1",
        "string program = 2",
        "string version = 3",
        "string state = 4",
    ),
    "SetRolloutStateResponse": ("Rollout rollout = 1",),
    "GetRolloutRequest": ("string organization_id = 1", "string program = 2", "string version = 3"),
    "GetRolloutResponse": ("Rollout rollout = 1", "repeated RolloutMachine machines = 2"),
    # AgentService
    "ReportAgentRequest": ("string part_id = 1", "bytes report_json = 2"),
    "ReportAgentResponse": ("string connectivity_key = 1",),
    "AgentOutcome": (
        "string program = 1",
        "string version = 2",
        "string version_from = 3",
        "string result = 4",
        "string reason = 5",
        f"{_TIME} ended = 6",
        f"{_TIME} received = 7",
    ),
    "GetAgentStateRequest": ("string part_id = 1",),
    "AgentSummary": (
        "string part_id = 1",
        "string agent_version = 2",
        "string agent_target = 3",
        "string server_version = 4",
        "string server_target = 5",
        "repeated string states = 6",
    ),
    # HealthService
    "PartHealth": (
        "string part_id = 1",
        "string state = 2",
        "int32 problems = 3",
        "string rejected = 4",
        "string location_id = 5",
        "string location = 6",
    ),
    "ListHealthRequest": (),
    "ListHealthResponse": ("repeated PartHealth parts = 1",),
    "ListAgentsRequest": (),
    "ListAgentsResponse": ("repeated AgentSummary agents = 1",),
    "AgentRequest": (
        "string id = 1",
        "string kind = 2",
        "string program = 3",
        f"{_TIME} requested = 4",
        f"{_TIME} expires = 5",
    ),
    "GetAgentStateResponse": (
        "string report_json = 1",
        f"{_TIME} received = 2",
        "repeated AgentOutcome outcomes = 3",
        "repeated AgentRequest requests = 4",
        "repeated AgentProblem problems = 5",
    ),
    "AgentProblem": ("string path = 1", "string message = 2", "string remedy = 3"),
    "WaitForAgentRequestsRequest": ("string part_id = 1", "repeated string arrived = 2"),
    "WaitForAgentRequestsResponse": ("repeated AgentRequest requests = 1",),
    "MarkAgentForUpdateRequest": ("string part_id = 1", "string program = 2"),
    "MarkAgentForUpdateResponse": (),
    "MarkAgentForCheckRequest": ("string part_id = 1",),
    "MarkAgentForCheckResponse": (),
    "CreateInstallCodeRequest": ("string part_id = 1",),
    "CreateInstallCodeResponse": ("string id = 1", "string key = 2", f"{_TIME} ends = 3"),
    # FleetService
    "FleetFilter": (
        "string text = 1",
        "string location_id = 2",
        "string state = 3",
        "string agent_version = 4",
        "string server_version = 5",
        "string update = 6",
        "bool problems = 7",
        "repeated string tags = 8",
        "string fragment_id = 9",
    ),
    "FleetMachine": (
        "string id = 1",
        "string name = 2",
        "string location_id = 3",
        "string location = 4",
        "string part_id = 5",
        "string state = 6",
        f"{_TIME} last_seen = 7",
        "string server_version = 8",
        "string agent_version = 9",
        "string platform = 10",
        "int32 revision = 11",
        "string running_revision = 12",
        "int32 problems = 13",
        "string rejected = 14",
        "repeated string updates = 15",
        "repeated string tags = 16",
        "repeated string fragments = 17",
    ),
    "ListFleetMachinesRequest": (
        "FleetFilter filter = 1",
        "string sort = 2",
        "string page_token = 3",
        "int32 limit = 4",
    ),
    "ListFleetMachinesResponse": (
        "repeated FleetMachine machines = 1",
        "string next_page_token = 2",
        "int32 matching = 3",
        "int32 total = 4",
        "int32 online = 5",
        "int32 degraded = 6",
        "int32 offline = 7",
        "int32 awaiting = 8",
        "int32 updating = 9",
        "int32 problems = 10",
    ),
    "ListMachineTagsRequest": ("string machine_id = 1",),
    "ListMachineTagsResponse": ("repeated string tags = 1",),
    "AddMachineTagsRequest": ("string machine_id = 1", "repeated string tags = 2"),
    "AddMachineTagsResponse": ("repeated string tags = 1",),
    "RemoveMachineTagsRequest": ("string machine_id = 1", "repeated string tags = 2"),
    "RemoveMachineTagsResponse": ("repeated string tags = 1",),
    "FleetWork": (
        "string kind = 1",
        "string fragment_id = 2",
        "string fragment_version = 3",
        "string path = 4",
        "string value_json = 5",
        "string program = 6",
        "string version = 7",
        "repeated string tags = 8",
        "string location_id = 9",
    ),
    "Refusal": ("string name = 1", "string reason = 2"),
    "PreviewFleetJobRequest": (
        "repeated string machine_ids = 1",
        "FleetFilter filter = 2",
        "bool every = 3",
        "FleetWork work = 4",
    ),
    "PreviewFleetJobResponse": (
        "string work = 1",
        "int32 selected = 2",
        "int32 not_permitted = 3",
        "int32 examined = 4",
        "int32 changing = 5",
        "int32 unchanged = 6",
        "int32 refused = 7",
        "repeated Refusal refusals = 8",
        "string example = 9",
        "repeated string difference = 10",
    ),
    "StartFleetJobRequest": (
        "repeated string machine_ids = 1",
        "FleetFilter filter = 2",
        "bool every = 3",
        "FleetWork work = 4",
        "optional int32 expected = 5",
    ),
    "StartFleetJobResponse": ("string id = 1",),
    "FleetJob": (
        "string id = 1",
        "string kind = 2",
        "string work = 3",
        "string undo_of = 4",
        "string state = 5",
        "int32 total = 6",
        "int32 changed = 7",
        "int32 unchanged = 8",
        "int32 failed = 9",
        "int32 skipped = 10",
        f"{_TIME} created = 11",
        f"{_TIME} ended = 12",
        "string author = 13",
        "bool revertible = 14",
    ),
    "FleetJobMachine": (
        "int32 position = 1",
        "string machine_id = 2",
        "string name = 3",
        "string state = 4",
        "string reason = 5",
        f"{_TIME} ended = 6",
    ),
    "ListFleetJobsRequest": (),
    "ListFleetJobsResponse": ("repeated FleetJob jobs = 1",),
    "GetFleetJobRequest": ("string id = 1", "string state = 2", "int32 after = 3", "int32 limit = 4"),
    "GetFleetJobResponse": ("FleetJob job = 1", "repeated FleetJobMachine machines = 2"),
    "WaitForFleetJobRequest": ("string id = 1", "int32 finished = 2"),
    "WaitForFleetJobResponse": ("FleetJob job = 1",),
    "StopFleetJobRequest": ("string id = 1",),
    "StopFleetJobResponse": (),
    "RevertFleetJobRequest": ("string id = 1",),
    "RevertFleetJobResponse": ("string id = 1",),
    "FleetView": ("string id = 1", "string name = 2", "string query = 3", "bool shared = 4"),
    "ListFleetViewsRequest": (),
    "ListFleetViewsResponse": ("repeated FleetView views = 1",),
    "SetFleetViewRequest": ("string name = 1", "string query = 2", "bool shared = 3"),
    "SetFleetViewResponse": ("string id = 1",),
    "DeleteFleetViewRequest": ("string id = 1",),
    "DeleteFleetViewResponse": (),
    # TrainingService
    "TrainingEvent": (
        "int64 number = 1",
        f"{_TIME} time = 2",
        "string kind = 3",
        "string status = 4",
        "string reason = 5",
        "string level = 6",
        "string message = 7",
        "string name = 8",
        "double value = 9",
        "int64 step = 10",
        "int64 done = 11",
        "int64 total = 12",
    ),
    "WaitForEventsRequest": ("string id = 1", "int64 after = 2", "int32 limit = 3", "int32 wait = 4"),
    "WaitForEventsResponse": (
        "repeated TrainingEvent events = 1",
        "string status = 2",
        "string reason = 3",
        "bool ended = 4",
    ),
    "TrainingJob": (
        "string id = 1",
        "string dataset_id = 2",
        "string organization_id = 3",
        "string model_name = 4",
        "string model_version = 5",
        "string model_type = 6",
        "repeated string tags = 7",
        "string registry_item_id = 8",
        "string registry_item_version = 9",
        f"{_MAP} arguments = 10",
        "string status = 11",
        "string error = 12",
        f"{_TIME} created_on = 13",
        f"{_TIME} last_modified = 14",
        f"{_TIME} training_started = 15",
        f"{_TIME} training_ended = 16",
        "string synced_model_id = 17",
    ),
    "ListJobsRequest": ("string organization_id = 1", "string status = 2", "int64 before = 3", "int32 limit = 4"),
    "ListJobsResponse": ("repeated TrainingJob jobs = 1", "int64 next = 2"),
    "TrainingNotification": (
        "string type = 1",
        "string value = 2",
        "bool signed = 3",
        "string state = 4",
        "string error = 5",
        "google.protobuf.Timestamp tried = 6",
    ),
    "ListNotificationsRequest": ("string organization_id = 1",),
    "ListNotificationsResponse": ("repeated TrainingNotification notifications = 1",),
    "AddNotificationRequest": (
        "string organization_id = 1",
        "string type = 2",
        "string value = 3",
        "string secret = 4",
    ),
    "AddNotificationResponse": (),
    "RemoveNotificationRequest": ("string organization_id = 1", "string type = 2", "string value = 3"),
    "RemoveNotificationResponse": (),
    **ALERT_MESSAGES,
    **ROLLOUT_MESSAGES,
}
"""Fields of each message, as in a .proto file."""

SERVICES: Final[Mapping[str, tuple[str, ...]]] = {
    INVITATIONS: ("ListInvites", "CreateInviteLink"),
    HISTORY: ("ListPartRevisions", "ListFragmentRevisions"),
    ALERTS: (
        "ListAlerts",
        "GetAlert",
        "ListAlertEvents",
        "AcknowledgeAlert",
        "SilenceAlert",
        "SilenceAlerts",
        "ListAlertSilences",
        "ListAlertRules",
        "SetAlertRule",
        "DeleteAlertRule",
        "ListAlertTargets",
        "AddAlertTarget",
        "RemoveAlertTarget",
        "SendAlertTest",
        "WaitForAlertTest",
        "ExplainAlertRule",
    ),
    TRIGGERS: (
        "ListTriggers",
        "ExplainTrigger",
        "SendTest",
        "StartTrigger",
        "ListDeliveries",
        "GetDelivery",
        "ReplayDelivery",
    ),
    ROLLOUTS: ROLLOUT_METHODS,
    RELEASES: (
        "ListReleases",
        "CreateReleaseKeys",
        "GetReleaseMetadata",
        "UpdateReleaseMetadata",
        "HasReleaseFile",
        "StartReleaseImport",
        "WaitForReleaseImport",
        "RotateReleaseKeys",
        "SetReleaseChannels",
        "StartRollout",
        "SetRolloutState",
        "GetRollout",
    ),
    AGENTS: (
        "ReportAgent",
        "GetAgentState",
        "ListAgents",
        "WaitForAgentRequests",
        "MarkAgentForUpdate",
        "MarkAgentForCheck",
        "CreateInstallCode",
    ),
    HEALTH: ("ListHealth",),
    FLEET: (
        "ListFleetMachines",
        "ListMachineTags",
        "AddMachineTags",
        "RemoveMachineTags",
        "PreviewFleetJob",
        "StartFleetJob",
        "ListFleetJobs",
        "GetFleetJob",
        "WaitForFleetJob",
        "StopFleetJob",
        "RevertFleetJob",
        "ListFleetViews",
        "SetFleetView",
        "DeleteFleetView",
    ),
    TRAINING: ("WaitForEvents", "ListJobs", "ListNotifications", "AddNotification", "RemoveNotification"),
}
"""Methods of each service by its full name. The messages of `Method` are `MethodRequest` and `MethodResponse`."""


def service(full_name: str) -> ServiceDescriptor:
    """Return the descriptor of a service of this package; the first call adds its file to the default pool."""
    from google.protobuf.descriptor_pool import Default

    _add_file()
    descriptor: ServiceDescriptor = Default().FindServiceByName(full_name)
    return descriptor


@cache
def _add_file() -> None:
    """Build the file of this package, and add it to the default pool."""
    from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2  # noqa: F401 - adds their files to the pool
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import Default

    file = FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto3", dependency=_FILES)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            _add_field(message, text)
    for name, methods in SERVICES.items():
        described = file.service.add(name=_last(name))
        for method in methods:
            kind = f".{PACKAGE}.{method}"
            described.method.add(name=method, input_type=f"{kind}Request", output_type=f"{kind}Response")
    Default().AddSerializedFile(file.SerializeToString())


def proto_text() -> Iterator[str]:
    """Yield the lines of the package's .proto file."""
    yield from ('syntax = "proto3";', "", f"package {PACKAGE};", "", *(f'import "{file}";' for file in _FILES))
    for name, methods in SERVICES.items():
        yield from ("", f"service {_last(name)} {{")
        yield from (f"  rpc {method}({method}Request) returns ({method}Response);" for method in methods)
        yield "}"
    for name, fields in MESSAGES.items():
        yield from ("", f"message {name} {{", *(f"  {text};" for text in fields), "}")


def _add_field(message: DescriptorProto, text: str) -> None:
    """Add the field with this declaration, such as `repeated Grant grants = 7`."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    *labels, kind, name, _, number = text.split()
    field = message.field.add(name=name, number=int(number))
    field.label = Field.LABEL_REPEATED if labels == ["repeated"] else Field.LABEL_OPTIONAL
    if labels == ["optional"]:  # a oneof with this field alone, as protoc represents it
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    if kind == _MAP:
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        for declaration in ("string key = 1", "string value = 2"):
            _add_field(entry, declaration)
        field.label, field.type = Field.LABEL_REPEATED, Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{message.name}.{entry.name}"
    elif "." in kind or kind in MESSAGES:
        field.type = Field.TYPE_MESSAGE
        field.type_name = f".{kind}" if "." in kind else f".{PACKAGE}.{kind}"
    else:
        field.type = Field.Type.Value(f"TYPE_{kind.upper()}")


def _last(name: str) -> str:
    return name.rpartition(".")[2]
