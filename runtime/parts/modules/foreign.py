"""Forwarding of calls for APIs of modules that this machine has no class for; messages stay unparsed.

The descriptors of such an API come from the module by reflection, or from the published messages. Only the field that
names the resource, the streaming direction and the options of methods are used.
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

from rpc import one_by_one, to_machine_error, too_deep
from rpc.api import APIS, MONITORED, NAME_FIELDS, SERVICES, CallInfo, CallTarget, messages, python_name
from schema import API, ErrorKind, MachineError

_OURS: Final = frozenset({"authorization"})  # credentials for this machine are not forwarded


class Raw(bytes):
    """An unparsed message, with the methods of a protobuf message class that grpclib needs."""

    @classmethod
    def FromString(cls, data: bytes) -> Raw:
        """Wrap the bytes of a message."""
        return cls(data)

    def SerializeToString(self) -> bytes:
        """Return the bytes of the message."""
        return self


@dataclass(frozen=True)
class ForeignMethod:
    """One RPC of an API that this machine has no class for."""

    api: API
    path: str  # /acme.component.gizmo.v1.GizmoService/DoOne
    descriptor: MethodDescriptor

    @property
    def cardinality(self) -> Cardinality:
        """The streaming direction."""
        return Cardinality((self.descriptor.client_streaming, self.descriptor.server_streaming))

    @cached_property
    def monitored(self) -> bool:
        """Whether the published option for methods that cause motion is set."""
        messages.common()  # the option is defined there
        copy = MethodDescriptorProto()
        self.descriptor.CopyToProto(copy)
        options = type(copy.options).FromString(copy.options.SerializeToString())
        return any(field.full_name == MONITORED and value for field, value in options.ListFields())

    async def name_of(self, request: bytes) -> str:
        """Return the name of the resource in a request.

        Raises MachineError: UNSUPPORTED if requests have no field for it, INVALID if the request is malformed.
        """
        fields = self.descriptor.input_type.fields_by_name
        field = next((name for name in NAME_FIELDS if name in fields), None)
        if field is None:
            raise MachineError(f"requests of {self.path} have no field for a resource", kind=ErrorKind.UNSUPPORTED)
        try:
            return str(getattr(GetMessageClass(self.descriptor.input_type).FromString(request), field))
        except DecodeError:
            deep = await one_by_one(too_deep(GetMessageClass(self.descriptor.input_type), request))
            text = f"{self.path}: the request {deep or f'is not a valid {self.descriptor.input_type.name}'}"
            raise MachineError(text, kind=ErrorKind.INVALID) from None


class ForeignApi:
    """An API that this machine has no class for, with its service."""

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
    """Return `api` with its published service, or None if it is not published."""
    entry = APIS.get(api)
    return None if entry is None else ForeignApi(api, messages.service(entry.service, entry.module))


def check_service(api: API, service: str) -> None:
    """Raise MachineError (INVALID) if `service` is the published service of another API."""
    owner = SERVICES.get(service)
    if owner is not None and owner.api != api:
        raise MachineError(f"{service} is not the service of {api}", kind=ErrorKind.INVALID)


class ForeignServices:
    """The services of all APIs that this machine has no class for, for its router and its reflection service."""

    def __init__(self) -> None:
        self._apis: dict[str, ForeignApi] = {}
        self._handlers: dict[str, Handler] = {}

    def serve(self, apis: list[ForeignApi]) -> None:
        """Serve exactly these APIs. If several have the same service, the first counts."""
        services: dict[str, ForeignApi] = {}
        for api in apis:
            services.setdefault(api.service, api)
        if services != self._apis:
            self._apis = services
            self._handlers.clear()

    def names(self) -> list[str]:
        """Return the full names of the services."""
        return list(self._apis)

    def pools(self) -> list[Any]:
        """Return the descriptor pools of the services."""
        return [api.descriptor.file.pool for api in self._apis.values()]

    def service_of(self, api: API) -> str | None:
        """Return the full name of the service of an API, or None."""
        return next((served.service for served in self._apis.values() if served.api == api), None)

    def handler(self, path: str, target: CallTarget) -> Handler | None:
        """Return the handler for the path of an RPC, or None. Calls reach their resource through `target`."""
        handler = self._handlers.get(path)
        if handler is None:
            api = self._apis.get(path[1 : path.rfind("/")])
            method = api.methods.get(path) if api is not None else None
            if method is None:
                return None
            handler = self._handlers[path] = Handler(partial(_answer, method, target), method.cardinality, Raw, Raw)
        return handler


async def _answer(method: ForeignMethod, target: CallTarget, stream: Any) -> None:
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
    async with target.call(info) as resource:
        try:
            await _forward(resource.channel(), method, stream, first, info.reply_metadata)
        except StreamTerminatedError as error:
            raise MachineError(
                f"{resource.name}: the connection to its module was lost: {error}", kind=ErrorKind.UNAVAILABLE
            ) from None


async def _forward(channel: Any, method: ForeignMethod, stream: Any, first: Raw, ours: Mapping[str, str]) -> None:
    """Forward messages, metadata, deadline and status in both directions."""
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
            # The module has not answered: the channel noticed its end before the process was reaped.
            raise StreamTerminatedError(error.message) from None
        if not isinstance(error, GRPCError) or not call.trailing_metadata:
            raise error from None
        await stream.send_trailing_metadata(
            status=error.status,
            status_message=error.message,
            status_details=_serializable(error.details),
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


def _serializable(details: Any) -> Any:
    """Return the error details whose message types exist here; others cannot be serialized again."""
    return [detail for detail in details if isinstance(detail, Message)] if details else None


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def do_command(channel: Any, api: ForeignApi, name: str, command: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call the published DoCommand, which most services have. Raises MachineError (UNSUPPORTED) if `api` lacks it."""
    common = messages.common()
    method = api.methods.get(f"/{api.service}/DoCommand")
    if method is None or method.descriptor.input_type.full_name != common.DoCommandRequest.DESCRIPTOR.full_name:
        raise MachineError(f"{api.api}/{name} does not support do_command", kind=ErrorKind.UNSUPPORTED)
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
        raise MachineError(f"the connection to its module was lost: {error}", kind=ErrorKind.UNAVAILABLE) from None
    result: Mapping[str, Any] = MessageToDict(reply.result)
    return result
