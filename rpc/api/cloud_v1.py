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

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto

PACKAGE: Final = "machine.cloud.v1"
FILE: Final = "machine/cloud/v1/cloud.proto"
INVITATIONS: Final = f"{PACKAGE}.InvitationService"
HISTORY: Final = f"{PACKAGE}.HistoryService"

_TIME: Final = "google.protobuf.Timestamp"
_TIME_FILE: Final = "google/protobuf/timestamp.proto"

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
}
"""Fields of each message, as in a .proto file."""

SERVICES: Final[Mapping[str, tuple[str, ...]]] = {
    INVITATIONS: ("ListInvites", "CreateInviteLink"),
    HISTORY: ("ListPartRevisions", "ListFragmentRevisions"),
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
    from google.protobuf import timestamp_pb2  # noqa: F401 - adds the file of Timestamp to the pool
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import Default

    file = FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto3", dependency=[_TIME_FILE])
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
    yield from ('syntax = "proto3";', "", f"package {PACKAGE};", "", f'import "{_TIME_FILE}";')
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
    if "." in kind or kind in MESSAGES:
        field.type = Field.TYPE_MESSAGE
        field.type_name = f".{kind}" if "." in kind else f".{PACKAGE}.{kind}"
    else:
        field.type = Field.Type.Value(f"TYPE_{kind.upper()}")


def _last(name: str) -> str:
    return name.rpartition(".")[2]
