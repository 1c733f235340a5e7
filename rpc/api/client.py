"""Client that calls published APIs by name, with Python values as arguments and plain Python values as results.

    client = ApiClient(channel)
    await client.call(API("rdk", "component", "motor"), "left", "set_power", power_pct=0.5)
    async for tick in client.stream("rdk:component:board", "pi", "stream_ticks", pin_names=["a"]): ...
    await client.call("viam.robot.v1.RobotService", "", "resource_names")

Trio is loaded by calls with a stream of requests only: the channel decides how the others wait.

Results consist of dicts, lists, numbers, text, bytes, datetimes and timedeltas, which `msgspec.json.encode` accepts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.api.convert.decode import field_reader, message_reader
from rpc.api.convert.encode import field_filler
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import ANY, Hint, signature_of
from rpc.api.methods import Method, methods_of
from rpc.api.table import APIS, SERVICES, ApiEntry
from rpc.status import to_machine_error
from schema import API, ErrorKind, MachineError
from schema.decoding import did_you_mean


class ApiClient:
    """Client on `channel`: a `rpc.client.channel.Channel` or any object with grpclib's `request`. The caller owns it.

    `metadata` is sent with every call. Methods raise MachineError: INVALID for invalid arguments, before anything is
    sent; UNAVAILABLE if the connection is lost; otherwise the error of the server. Use cancel scopes for time limits.
    """

    def __init__(self, channel: Any, *, metadata: Mapping[str, str] | None = None) -> None:
        self._channel = channel
        self._metadata = dict(metadata or {})

    async def call(self, api: API | str, name: str, method: str, /, **arguments: Any) -> Any:
        """Call a method that has one result, and return the result.

        `api` is an API, its text form, or the full name of a machine-wide service; its `name` is then "".
        """
        return await self._call(_Call(find_method(api, method), name, arguments), ANY)

    async def call_with_metadata(
        self, api: API | str, name: str, method: str, /, **arguments: Any
    ) -> tuple[Any, Mapping[str, Any]]:
        """Call a method that has one result, and return the result.

        Returns the result and the initial metadata of the reply.
        """
        metadata: dict[str, Any] = {}
        return await self._call(_Call(find_method(api, method), name, arguments), ANY, metadata), metadata

    async def call_as(self, base: type, name: str, method: str, /, **arguments: Any) -> Any:
        """Call a method that has one result, and return the result.

        Uses the API of `base` and returns the result type of its method.
        """
        rpc_method = find_method(base.API, method)  # type: ignore[attr-defined]
        return await self._call(_Call(rpc_method, name, arguments), result_hint(base, method))

    async def call_at(self, path: str, base: type, name: str, method: str, /, **arguments: Any) -> Any:
        """Call the RPC at `path`, whose messages have the same fields as those of `method`; return its result."""
        rpc_method = replace(find_method(base.API, method), path=path)  # type: ignore[attr-defined]
        return await self._call(_Call(rpc_method, name, arguments), result_hint(base, method))

    async def _call(self, call: _Call, hint: Hint, metadata: dict[str, Any] | None = None) -> Any:
        if call.method.server_streaming:
            raise MachineError(
                f"{call.method.name} returns a stream of results", kind=ErrorKind.INVALID, remedy="use stream"
            )
        with _errors():
            async with self._open(call.method) as stream:
                if call.items is None:
                    await stream.send_message(call.first, end=True)
                    reply = await stream.recv_message()
                else:
                    import trio

                    await stream.send_message(call.first)
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(call.send_items, stream)
                        reply = await stream.recv_message()
                        nursery.cancel_scope.cancel()
            if reply is None:
                raise MachineError(f"{call.method.path} ended without a reply", kind=ErrorKind.INTERNAL)
            if metadata is not None:
                metadata.update(stream.initial_metadata or {})
            return _result(call.method, reply, hint)

    def stream(self, api: API | str, name: str, method: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Call a method and yield its results. Use it in `contextlib.aclosing`; closing the generator ends the call."""
        return self._stream(_Call(find_method(api, method), name, arguments), ANY)

    def stream_as(self, base: type, name: str, method: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Call a method and yield its results. Uses the API of `base` and yields the result type of its method."""
        rpc_method = find_method(base.API, method)  # type: ignore[attr-defined]
        return self._stream(_Call(rpc_method, name, arguments), result_hint(base, method))

    async def _stream(self, call: _Call, hint: Hint) -> AsyncGenerator[Any, None]:
        with _errors():
            async with self._open(call.method) as stream:
                if call.first is None:
                    await stream.send_request()
                else:
                    await stream.send_message(call.first, end=call.items is None)
                if call.items is None:
                    while (reply := await stream.recv_message()) is not None:
                        yield _result(call.method, reply, hint)
                    return
                from support import side_task

                async with side_task(partial(call.send_items, stream)) as sending:
                    while (reply := await sending.until(stream.recv_message)) is not None:
                        yield _result(call.method, reply, hint)

    def _open(self, method: Method) -> Any:
        cardinality = Cardinality((method.client_streaming, method.server_streaming))
        return self._channel.request(
            method.path, cardinality, method.request_class, method.reply_class, metadata=self._metadata or None
        )


def find_method(api: API | str, method: str) -> Method:
    """Return a method of an API; MachineError (INVALID) with the nearest name if it does not exist."""
    methods = _methods(_entry(api))
    rpc_method = methods.get(method)
    if rpc_method is None:
        raise MachineError(
            f"{api} has no method {method!r}", kind=ErrorKind.INVALID, remedy=did_you_mean(method, methods)
        )
    return rpc_method


def methods_for(api: API | str) -> Mapping[str, Method]:
    """Return the methods of an API or machine-wide service by name; MachineError (INVALID) for an unknown API."""
    return _methods(_entry(api))


def build_request(method: Method, name: str, arguments: Mapping[str, Any]) -> Any:
    """Build the first or only request of a call, without arguments of None. MachineError (INVALID) for invalid ones."""
    request = method.request_class()
    streamed = method.streamed
    part = request
    if streamed is not None and streamed.init:
        part = getattr(request, streamed.init)
        part.SetInParent()
    if method.name_field:
        setattr(request if method.name_field in method.request.fields_by_name else part, method.name_field, name)
    for key, value in arguments.items():
        field = method.arguments.get(key)
        if field is None:
            argument_names = [*method.arguments, *([streamed.argument] if streamed is not None else [])]
            raise MachineError(
                f"{method.name} has no argument {key!r}",
                kind=ErrorKind.INVALID,
                remedy=did_you_mean(key, argument_names) if argument_names else "it takes no arguments",
            )
        if value is None:
            continue
        try:
            field_filler(field)(request if field.containing_type is method.request else part, value)
        except FitError as error:
            error.inside(key)
            raise MachineError(f"{method.name}: {error}", kind=ErrorKind.INVALID) from None
    return request


class _Call:
    """Call whose first request has been built."""

    def __init__(self, method: Method, name: str, arguments: dict[str, Any]) -> None:
        self.method = method
        self.items: Any = None
        if method.streamed is not None:
            self.items = arguments.pop(method.streamed.argument, ())
        whole = method.streamed is not None and not method.streamed.item
        self.first = None if whole else build_request(method, name, arguments)

    async def send_items(self, stream: Any) -> None:
        """Send a request for each item, then end the request stream."""
        if isinstance(self.items, AsyncIterable):
            async for item in self.items:
                await stream.send_message(self._request(item))
        else:
            for item in self.items:
                await stream.send_message(self._request(item))
        await stream.end()

    def _request(self, item: Any) -> Any:
        request = self.method.request_class()
        streamed = self.method.streamed
        if streamed is not None and not streamed.item:
            return item
        struct = streamed.struct if streamed is not None and isinstance(item, Mapping) else ""
        field = self.method.request.fields_by_name[struct] if struct else self.method.item
        try:
            field_filler(field)(request, item)
        except FitError as error:
            raise MachineError(f"{self.method.name}: {error}", kind=ErrorKind.INVALID) from None
        return request


@cache
def result_hint(base: type, method: str) -> Hint:
    """Return the result type of a method of a base class, or the type that it yields."""
    return signature_of(getattr(base, method)).result


def _result(method: Method, reply: Any, hint: Hint) -> Any:
    fields = method.reply.fields
    if not fields:
        return None
    if not method.is_whole(hint):
        field = fields[0]
        return None if field.has_presence and not reply.HasField(field.name) else field_reader(field, hint)(reply)
    return message_reader(method.reply, hint)(reply)


@contextmanager
def _errors() -> Any:
    """Convert errors of the transport to MachineError."""
    try:
        try:
            yield
        except BaseExceptionGroup as group:  # from the nursery that sends a stream of requests
            raise _leaf(group) from None
    except GRPCError as error:
        raise to_machine_error(error) from None
    except (StreamTerminatedError, OSError) as error:
        raise MachineError(f"the connection was lost: {error}", kind=ErrorKind.UNAVAILABLE) from error
    except FitError as error:
        raise MachineError(f"the reply does not match the API: {error}", kind=ErrorKind.INTERNAL) from None


def _leaf(error: BaseException) -> BaseException:
    """Return the only exception in nested groups, or the group itself if it has several.

    Errors of the call itself count once, because both the sending and the receiving task raise them.
    """
    while isinstance(error, BaseExceptionGroup):
        others = error.split((GRPCError, StreamTerminatedError, OSError))[1]
        if len(error.exceptions) > 1 and others is not None:
            break
        error = error.exceptions[0]
    return error


def _entry(api: API | str) -> ApiEntry:
    entry = APIS.get(api) if isinstance(api, API) else SERVICES.get(api)
    if entry is None and isinstance(api, str) and api.count(":") == 2:
        entry = APIS.get(API.parse(api))
    if entry is None:
        raise MachineError(
            f"{api} is not a published API",
            kind=ErrorKind.INVALID,
            remedy=did_you_mean(str(api), [*map(str, APIS), *SERVICES]),
        )
    return entry


@cache
def _methods(entry: ApiEntry) -> Mapping[str, Method]:
    return methods_of(entry)
