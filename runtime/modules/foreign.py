"""APIs of modules that this machine has no class for: their calls are forwarded as the bytes they are.

What is known of such an API are its descriptors: of the module itself, by reflection, or of the published messages.
They say which field of a request names the resource, and which way a method streams; nothing else is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import trio
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodDescriptorProto
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.api import messages
from rpc.api.names import NAME_FIELDS, python_name
from rpc.api.table import APIS, MONITORED, SERVICES
from rpc.api.target import CallInfo, Target
from rpc.parsing import one_by_one, too_deep
from rpc.status import to_machine_error
from schema.errors import ErrorKind, MachineError
from schema.names import API

_OURS: Final = frozenset({"authorization"})  # keys to this machine are not handed on


class Raw(bytes):
    """A message that is not looked into; passes for a class of messages."""

    @classmethod
    def FromString(cls, data: bytes) -> Raw:
        """The message whose bytes these are."""
        return cls(data)

    def SerializeToString(self) -> bytes:
        """Its bytes."""
        return self


@dataclass(frozen=True)
class ForeignMethod:
    """One RPC of such an API."""

    api: API
    path: str  # /acme.component.gizmo.v1.GizmoService/DoOne
    descriptor: MethodDescriptor

    @property
    def cardinality(self) -> Cardinality:
        """Which way it streams."""
        return Cardinality((self.descriptor.client_streaming, self.descriptor.server_streaming))

    @cached_property
    def monitored(self) -> bool:
        """Whether it moves something: the published option for that is set."""
        messages.common()  # the option is defined there
        copy = MethodDescriptorProto()
        self.descriptor.CopyToProto(copy)
        options = type(copy.options).FromString(copy.options.SerializeToString())
        return any(field.full_name == MONITORED and value for field, value in options.ListFields())

    async def name_of(self, request: bytes) -> str:
        """The resource that a request is for; MachineError (INVALID) if it does not say."""
        fields = self.descriptor.input_type.fields_by_name
        field = next((name for name in NAME_FIELDS if name in fields), None)
        if field is None:
            raise MachineError(f"requests of {self.path} name no resource", kind=ErrorKind.UNSUPPORTED)
        try:
            return str(getattr(GetMessageClass(self.descriptor.input_type).FromString(request), field))
        except DecodeError:
            deep = await one_by_one(too_deep(GetMessageClass(self.descriptor.input_type), request))
            text = f"{self.path}: the request {deep or f'is not a valid {self.descriptor.input_type.name}'}"
            raise MachineError(text, kind=ErrorKind.INVALID) from None


class ForeignApi:
    """One such API and the service that speaks for it."""

    def __init__(self, api: API, descriptor: ServiceDescriptor) -> None:
        self.api = api
        self.descriptor = descriptor
        self.service: str = descriptor.full_name
        self.methods: Mapping[str, ForeignMethod] = {
            path: ForeignMethod(api, path, method)
            for method in descriptor.methods
            for path in [f"/{descriptor.full_name}/{method.name}"]
        }


def published(api: API) -> ForeignApi | None:
    """A published API that this machine has no class for."""
    entry = APIS.get(api)
    return None if entry is None else ForeignApi(api, messages.service(entry.service, entry.module))


def check_service(api: API, service: str) -> None:
    """MachineError if a module claims a service that is somebody else's."""
    owner = SERVICES.get(service)
    if owner is not None and owner.api != api:
        raise MachineError(f"{service} does not speak for {api}", kind=ErrorKind.INVALID)


class ForeignServices:
    """The services of all such APIs of one machine, for its router and its reflection."""

    def __init__(self) -> None:
        self._apis: dict[str, ForeignApi] = {}
        self._handlers: dict[str, Handler] = {}

    def serve(self, apis: list[ForeignApi]) -> None:
        """Serve exactly these; of several with one service the first."""
        wanted: dict[str, ForeignApi] = {}
        for api in apis:
            wanted.setdefault(api.service, api)
        if wanted != self._apis:
            self._apis = wanted
            self._handlers.clear()

    def names(self) -> list[str]:
        """Full names of the services."""
        return list(self._apis)

    def pools(self) -> list[Any]:
        """Where the descriptors are."""
        return [api.descriptor.file.pool for api in self._apis.values()]

    def service_of(self, api: API) -> str | None:
        """The service that speaks for an API."""
        return next((one.service for one in self._apis.values() if one.api == api), None)

    def handler(self, path: str, target: Target) -> Handler | None:
        """As a router's `get`; calls reach their resource through `target`."""
        handler = self._handlers.get(path)
        if handler is None:
            api = self._apis.get(path[1 : path.rfind("/")])
            method = api.methods.get(path) if api is not None else None
            if method is None:
                return None
            handler = self._handlers[path] = Handler(partial(_answer, method, target), method.cardinality, Raw, Raw)
        return handler


async def _answer(method: ForeignMethod, target: Target, stream: Any) -> None:
    first = await stream.recv_message()
    if first is None:
        raise MachineError(f"{method.path}: the request is missing", kind=ErrorKind.INVALID)
    info = CallInfo(
        method.api,
        await method.name_of(first),
        python_name(method.descriptor.name),
        method.path,
        method.monitored,
        method.cardinality is not Cardinality.UNARY_UNARY,
        stream.metadata,
        stream.identity,
        stream.peer,
    )
    async with target.call(info) as found:
        try:
            await _forward(found.channel(), method, stream, first, info.reply_metadata)
        except StreamTerminatedError as error:
            raise MachineError(f"{found.name}: its module went away: {error}", kind=ErrorKind.UNAVAILABLE) from None


async def _forward(channel: Any, method: ForeignMethod, stream: Any, first: Raw, ours: Mapping[str, str]) -> None:
    """Pass messages, metadata, deadline and outcome on, in both directions."""
    metadata = [(key, value) for key, value in stream.metadata.items() if key not in _OURS]
    call = channel.request(method.path, method.cardinality, Raw, Raw, metadata=metadata, deadline=stream.deadline)
    try:
        async with call:
            if method.descriptor.client_streaming:
                await call.send_request()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_send_all, call, first, stream)
                    await _return_all(call, stream, ours)
                    nursery.cancel_scope.cancel()
            else:
                await call.send_message(first, end=True)
                await _return_all(call, stream, ours)
    except (GRPCError, BaseExceptionGroup) as raised:
        error = _leaf(raised)
        if isinstance(error, GRPCError) and error.status is Status.UNAVAILABLE and call.initial_metadata is None:
            # The module has answered nothing: the channel noticed its end before its process was reaped.
            raise StreamTerminatedError(error.message) from None
        if not isinstance(error, GRPCError) or not call.trailing_metadata:
            raise error from None
        await stream.send_trailing_metadata(
            status=error.status,
            status_message=error.message,
            status_details=_known(error.details),
            metadata=call.trailing_metadata,
        )
        return
    if call.trailing_metadata:
        await stream.send_trailing_metadata(metadata=call.trailing_metadata)


async def _return_all(call: Any, stream: Any, ours: Mapping[str, str]) -> None:
    await call.recv_initial_metadata()
    await stream.send_initial_metadata(metadata=[*(call.initial_metadata or {}).items(), *ours.items()])
    while (reply := await call.recv_message()) is not None:
        await stream.send_message(reply)
    await call.recv_trailing_metadata()


async def _send_all(call: Any, first: Raw, stream: Any) -> None:
    await call.send_message(first)
    async for request in stream:
        await call.send_message(request)
    await call.end()


def _known(details: Any) -> Any:
    """Those details of an error whose messages are known here, which alone can be written again."""
    return [one for one in details if isinstance(one, Message)] if details else None


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def do_command(channel: Any, api: ForeignApi, name: str, command: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call the published DoCommand, which most services have; MachineError (UNSUPPORTED) if this one has not."""
    common = messages.common()
    method = api.methods.get(f"/{api.service}/DoCommand")
    if method is None or method.descriptor.input_type.full_name != common.DoCommandRequest.DESCRIPTOR.full_name:
        raise MachineError(f"{api.api}/{name} has no commands", kind=ErrorKind.UNSUPPORTED)
    request = common.DoCommandRequest(name=name)
    request.command.update(command)
    try:
        async with channel.request(
            method.path, method.cardinality, common.DoCommandRequest, common.DoCommandResponse
        ) as call:
            await call.send_message(request, end=True)
            reply = await call.recv_message()
    except GRPCError as error:
        raise to_machine_error(error) from None
    except StreamTerminatedError as error:
        raise MachineError(f"its module went away: {error}", kind=ErrorKind.UNAVAILABLE) from None
    found: Mapping[str, Any] = MessageToDict(reply.result)
    return found
