"""Python view of the RPCs of a service, derived from protobuf descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

from rpc.api import messages
from rpc.api.convert.encode import message_type
from rpc.api.convert.hints import Hint, fields_of
from rpc.api.convert.names import NAME_FIELDS, python_name
from rpc.api.table import ALSO_MONITORED, MONITORED, STREAMED, ApiEntry, Streamed

if TYPE_CHECKING:
    from google.protobuf.message import Message


@dataclass(frozen=True)
class Method:
    """RPC and its Python method."""

    name: str  # name of the Python method
    path: str  # /viam.component.motor.v1.MotorService/SetPower
    resource: bool  # the request names a resource
    name_field: str  # field of the request, or of its `init`, with the name of the resource
    arguments: Mapping[str, FieldDescriptor]  # by name; without the resource name and the streamed items
    client_streaming: bool
    server_streaming: bool
    monitored: bool
    deprecated: bool
    request: Descriptor
    reply: Descriptor
    streamed: Streamed | None

    @property
    def request_class(self) -> type[Message]:
        """Message class of requests."""
        return messages.message_class(self.request)

    @property
    def reply_class(self) -> type[Message]:
        """Message class of replies."""
        return messages.message_class(self.reply)

    @property
    def item(self) -> FieldDescriptor:
        """Request field with the streamed items of a client-streaming RPC, unless the items are whole requests."""
        assert self.streamed is not None
        return self.request.fields_by_name[self.streamed.item]

    def is_whole(self, hint: Hint) -> bool:
        """Return True if a result of the hinted type represents the whole reply, False if only its single field."""
        fields = self.reply.fields
        if len(fields) != 1:
            return True
        slots = fields_of(hint.cls) if hint.cls is not None else None
        return slots is not None and slots.keys() == {fields[0].name}


def methods_of(entry: ApiEntry) -> Mapping[str, Method]:
    """Return the RPCs of a service by Python method name; loads its messages.

    Client-streaming RPCs that are not in `table.STREAMED` are omitted.
    """
    service = entry.descriptor or messages.service(entry.service, entry.module)
    methods = (_method(descriptor, resource=entry.api is not None) for descriptor in service.methods)
    return {method.name: method for method in methods if method is not None}


def _method(descriptor: MethodDescriptor, *, resource: bool) -> Method | None:
    streamed = STREAMED.get(descriptor.full_name)
    if descriptor.client_streaming and streamed is None:
        return None
    request = descriptor.input_type
    fields = {field.name: field for field in request.fields}
    if streamed is not None:
        fields = {name: field for name, field in fields.items() if streamed.item not in ("", name)}
        if streamed.init:
            init = fields.pop(streamed.init)
            fields |= {field.name: field for field in message_type(init).fields}
    name_field = next((name for name in NAME_FIELDS if name in fields), "") if resource else ""
    fields.pop(name_field, None)
    options: dict[str, Any] = {option.full_name: value for option, value in descriptor.GetOptions().ListFields()}
    service = descriptor.containing_service
    return Method(
        name=python_name(descriptor.name),
        path=f"/{service.full_name}/{descriptor.name}",
        resource=resource,
        name_field=name_field,
        arguments=fields,
        client_streaming=bool(descriptor.client_streaming),
        server_streaming=bool(descriptor.server_streaming),
        monitored=bool(options.get(MONITORED)) or descriptor.full_name in ALSO_MONITORED,
        deprecated=bool(options.get("google.protobuf.MethodOptions.deprecated")),
        request=request,
        reply=descriptor.output_type,
        streamed=streamed,
    )
