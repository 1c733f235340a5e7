"""Write micro/wire/messages.py: the published calls that a micro server answers or makes, and their messages.

The tables are tuples of constants, which MicroPython leaves in the flash if the module is frozen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor, ServiceDescriptor

from rpc.api import messages as published
from rpc.api import python_name
from rpc.api.table import APIS, MONITORED, SERVICES
from schema import API

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "micro" / "wire" / "messages.py"

COMPONENTS = (
    "base", "board", "button", "encoder", "generic", "motor", "movement_sensor", "power_sensor", "sensor", "servo",
    "switch",
)  # fmt: skip
MACHINE = {
    "viam.robot.v1.RobotService": (
        "GetCloudMetadata", "GetMachineStatus", "GetOperations", "GetVersion", "Log", "ResourceNames",
        "SendSessionHeartbeat", "Shutdown", "StartSession", "StopAll",
    ),
    "proto.rpc.v1.AuthService": ("Authenticate",),
}  # fmt: skip
CLOUD = {
    "viam.app.v1.RobotService": ("Log",),
    "viam.app.datasync.v1.DataSyncService": ("DataCaptureUpload",),
}
"""Services that the micro server calls."""

LEFT_OUT = ("GetGeometries", "GetStatus")
"""Calls of every component that no micro server answers."""

FIELDS_LEFT_OUT = (
    "annotations", "caller", "cloud_metadata", "extra", "fields", "job_statuses", "method_parameters", "modules",
    "packages", "stack",
)  # fmt: skip
"""Fields that are neither read nor written; on the wire, they are skipped like unknown ones."""

OUTSIDE = {"google.protobuf.Struct": 9, "google.protobuf.Value": 10}
KINDS = {
    FieldDescriptor.TYPE_BOOL: 0,
    FieldDescriptor.TYPE_UINT32: 1,
    FieldDescriptor.TYPE_UINT64: 1,
    FieldDescriptor.TYPE_ENUM: 1,
    FieldDescriptor.TYPE_INT32: 2,
    FieldDescriptor.TYPE_INT64: 2,
    FieldDescriptor.TYPE_DOUBLE: 4,
    FieldDescriptor.TYPE_FLOAT: 5,
    FieldDescriptor.TYPE_STRING: 6,
    FieldDescriptor.TYPE_BYTES: 7,
    FieldDescriptor.TYPE_MESSAGE: 8,
}
REPEATED, OPTIONAL, MAP = 16, 32, 64

Field = tuple[int, str, int, int]

HEAD = '''"""Published calls and their messages. Written by tools/gen_micro_messages.py; `make generate` updates it.

Pure. A message is a number. MESSAGES has its fields: number, name, kind with flags (see protobuf), message. SERVICES
and CALLS have, for each service, its name, its API, and its calls: name, method, request, reply, whether it moves.
"""

# ruff: noqa: E501
# fmt: off
'''


class Messages:
    """Numbers the messages that the calls need; messages with the same fields have the same number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Field, ...], int] = {}
        self._names: list[list[str]] = []

    def number(self, message: Descriptor) -> int:
        """Return the number of a message, which is added with all that it contains."""
        fields = tuple(self._field(field) for field in message.fields if field.name not in FIELDS_LEFT_OUT)
        number = self._numbers.setdefault(fields, len(self._numbers))
        if number == len(self._names):
            self._names.append([])
        if message.full_name not in self._names[number]:
            self._names[number].append(message.full_name)
        return number

    def lines(self) -> Iterator[str]:
        """Yield the line of each message."""
        for fields, number in self._numbers.items():
            names = self._names[number]
            more = f" and {len(names) - 1} more" if names[1:] else ""
            yield f"    {fields},  # {number} {names[0]}{more}"

    def _field(self, field: FieldDescriptor) -> Field:
        inner = field.message_type
        kind = OUTSIDE.get(inner.full_name) if inner is not None else None
        if kind is None:
            kind = KINDS[field.type]
        if inner is not None and inner.GetOptions().map_entry:
            kind |= MAP
        elif field.is_repeated:
            kind |= REPEATED
        elif field.has_presence:
            kind |= OPTIONAL
        return field.number, field.name, kind, self.number(inner) if kind & 15 == 8 and inner is not None else 0


def _monitored(method: MethodDescriptor) -> bool:
    return any(field.full_name == MONITORED and value for field, value in method.GetOptions().ListFields())


def _service(messages: Messages, service: ServiceDescriptor, api: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"    ({service.full_name!r}, {api!r}, ("
    for method in service.methods:
        if method.client_streaming or method.server_streaming or method.name in LEFT_OUT:
            continue
        if not names or method.name in names:
            row = (
                method.name,
                python_name(method.name),
                messages.number(method.input_type),
                messages.number(method.output_type),
                _monitored(method),
            )
            yield f"        {row},"
    yield "    )),"


def page() -> str:
    """Return the text of the file."""
    messages = Messages()
    lines = ["SERVICES = ("]
    for name, calls in MACHINE.items():
        lines += _service(messages, _descriptor(name), "", calls)
    for name in COMPONENTS:
        lines += _service(messages, _descriptor(APIS[API("rdk", "component", name)].service), name, ())
    lines += [")", "CALLS = ("]
    for name, calls in CLOUD.items():
        lines += _service(messages, _descriptor(name), "", calls)
    sensor_data = published.load("app.datasync.v1.data_sync_pb2").SensorData.DESCRIPTOR
    lines += [")", f"SENSOR_DATA = {messages.number(sensor_data)}", "MESSAGES = (", *messages.lines(), ")", ""]
    return "\n".join([HEAD, *lines])


def _descriptor(service: str) -> ServiceDescriptor:
    return published.service(service, SERVICES[service].module)
