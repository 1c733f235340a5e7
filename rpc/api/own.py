"""Calls for which the published API has no messages.

Those between a cloud and its machines have JSON as messages. They are not for programs of users, and may change.
The service of `base_remote_control`, an API without a published service, is built here from its fields, so that protoc
is not needed. Its numbers of fields are part of the wire format.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor

SERIES: Final = "/machine.robot.v1.StatisticsService/Series"
"""From {"from", "to", "points"}, times in milliseconds since 1970, to what `History.series` returns."""

MAX_REQUEST: Final = 1024  # bytes

REMOTE_CONTROL: Final = "machine.service.baseremotecontrol.v1.BaseRemoteControlService"

_COMMON: Final = "viam.common.v1"
_NAMED: Final = (("name", "string", 1), ("extra", "google.protobuf.Struct", 99))
_MESSAGES: Final[Mapping[str, tuple[tuple[str, str, int], ...]]] = {
    "ControllerInputsRequest": _NAMED,
    "ControllerInputsResponse": (("inputs", "repeated string", 1),),
    "StopRequest": _NAMED,
    "StopResponse": (),
    "IsMovingRequest": (("name", "string", 1),),
    "IsMovingResponse": (("is_moving", "bool", 1),),
}
_METHODS: Final = ("ControllerInputs", "Stop", "IsMoving")
_COMMON_METHODS: Final = ("DoCommand", "GetStatus")


def remote_control() -> ServiceDescriptor:
    """Return the service of `base_remote_control`. The messages of the package `viam.common.v1` must be loaded."""
    from google.protobuf.descriptor_pool import Default

    _add_remote_control()
    descriptor: ServiceDescriptor = Default().FindServiceByName(REMOTE_CONTROL)
    return descriptor


@cache
def _add_remote_control() -> None:
    from google.protobuf import struct_pb2  # noqa: F401 - adds its file to the pool
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import Default

    package, _, last = REMOTE_CONTROL.rpartition(".")
    file = FileDescriptorProto(name=f"{package.replace('.', '/')}.proto", package=package, syntax="proto3")
    file.dependency.extend(("common/v1/common.proto", "google/protobuf/struct.proto"))
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, kind, number in fields:
            repeated, _, kind = kind.rpartition(" ")
            field = message.field.add(name=field_name, number=number)
            field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            if "." in kind:
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{kind}"
            else:
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    service = file.service.add(name=last)
    for owner, methods in ((package, _METHODS), (_COMMON, _COMMON_METHODS)):
        for method in methods:
            kind = f".{owner}.{method}"
            service.method.add(name=method, input_type=f"{kind}Request", output_type=f"{kind}Response")
    Default().AddSerializedFile(file.SerializeToString())


class Raw(bytes):
    """A message that is not parsed."""

    def SerializeToString(self) -> bytes:
        """Return the content of the message."""
        return bytes(self)

    @classmethod
    def FromString(cls, data: bytes) -> Raw:
        """Return a message with this content."""
        return cls(data)
