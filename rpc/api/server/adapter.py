"""Handlers of published services for `rpc.call`, built once from Python classes, descriptors and type hints.

A handler converts the request to keyword arguments, enters the target, calls the method and converts its result to the
reply. A method that the class does not implement is UNIMPLEMENTED. A result that does not fit the API is a bug of the
driver: it is logged and answered INTERNAL.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

import structlog
from grpclib.const import Cardinality, Handler

from rpc.api.convert.encode import field_filler, message_fill
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import ANY, Hint, Slot, signature_of
from rpc.api.methods import Method, methods_of
from rpc.api.server.check import implementation_problems
from rpc.api.server.requests import Requests, first_reader, items_reader, missing, name_reader, reader
from rpc.api.server.target import CallInfo, CallTarget
from rpc.api.table import APIS, SERVICES, ApiEntry
from rpc.serializing import serialize_in_steps
from schema import API, ErrorKind, MachineError

_log = structlog.stdlib.get_logger("rpc.api")


def serve_api(api: API, base: type, target: CallTarget) -> Mapping[str, Handler]:
    """Return the handlers of a resource API by path; `base` is the base class of its drivers.

    Raises MachineError if the API is unknown, TypeError if `base` does not fit it.
    """
    entry = APIS.get(api)
    if entry is None:
        raise MachineError(f"{api} is not a published API", kind=ErrorKind.UNSUPPORTED)
    return _serve(entry, base, target)


def serve_service(service: str, cls: type, target: CallTarget) -> Mapping[str, Handler]:
    """Return the handlers of a machine-wide service by path; RPCs without a method in `cls` are omitted.

    Raises MachineError if the service is unknown, TypeError if `cls` does not fit it.
    """
    entry = SERVICES.get(service)
    if entry is None:
        raise MachineError(f"{service} is not a published service", kind=ErrorKind.UNSUPPORTED)
    return _serve(entry, cls, target)


def _serve(entry: ApiEntry, cls: type, target: CallTarget) -> Mapping[str, Handler]:
    methods = [method for name, method in methods_of(entry).items() if hasattr(cls, name)]
    wrong = [problem for method in methods for problem in implementation_problems(method, cls)]
    if wrong:
        raise TypeError("; ".join(wrong))
    return {method.path: _Binding(method, cls, entry.api, target).handler() for method in methods}


class _Binding:
    """RPC bound to the method of a class."""

    def __init__(self, method: Method, cls: type, api: API | None, target: CallTarget) -> None:
        self.method = method
        self.api = api
        self.target = target
        signature = signature_of(getattr(cls, method.name))
        self.slots = dict(signature.parameters)
        if signature.any_keyword:
            self.slots |= {name: Slot(ANY, required=False) for name in method.arguments.keys() - self.slots.keys()}
        self.encode = _encoder(method, signature.result)

    def handler(self) -> Handler:
        """Return the handler for `rpc.call` and grpclib."""
        method = self.method
        if method.client_streaming:
            function = self.bidirectional() if method.server_streaming else self.client_streaming()
        else:
            function = self.server_streaming() if method.server_streaming else self.unary()
        cardinality = Cardinality((method.client_streaming, method.server_streaming))
        return Handler(function, cardinality, method.request_class, method.reply_class)

    def unary(self) -> Callable[[Any], Any]:
        """Return the handler function of a unary RPC."""
        read, name_of = reader(self.method, self.slots), name_reader(self.method)
        encode, call = self.encode, self.target.call
        offload = getattr(self.target, "offload", None)
        api, method, path, monitored = self.api, self.method.name, self.method.path, self.method.monitored

        async def answer(stream: Any) -> None:
            request = await stream.recv_message()
            if request is None:
                raise missing(path)
            if offload is None:
                keywords = read(request)
            else:
                keywords = await offload(stream, path, request, partial(read, request))
            info = CallInfo(
                api,
                name_of(request),
                method,
                path,
                monitored,
                False,
                stream.metadata,
                stream.identity,
                stream.peer,
                arguments=keywords,
                call=stream,
            )
            async with call(info) as instance:
                if info.reply_metadata:
                    await stream.send_initial_metadata(metadata=info.reply_metadata)
                function = getattr(instance, method, None)
                if function is None:
                    raise _not_implemented(instance, info)
                try:
                    result = await function(**keywords)
                except NotImplementedError as error:
                    raise _not_implemented(instance, info, error) from error
                try:
                    if offload is None:
                        reply, encoded = encode(result), None
                    else:
                        reply, encoded = await offload(stream, path, result, partial(_serialized, encode, result))
                except FitError as error:
                    raise _driver_bug(instance, info, error) from None
            await stream.send_message(reply, encoded=encoded)

        return answer

    def server_streaming(self) -> Callable[[Any], Any]:
        """Return the handler function of a server-streaming RPC."""
        read, name_of = reader(self.method, self.slots), name_reader(self.method)

        async def answer(stream: Any) -> None:
            request = await stream.recv_message()
            if request is None:
                raise missing(self.method.path)
            keywords = await self.read_offloaded(stream, request, partial(read, request))
            await self.send_all(stream, self.info(stream, name_of(request), keywords), keywords)

        return answer

    def client_streaming(self) -> Callable[[Any], Any]:
        """Return the handler function of a client-streaming RPC."""
        read, name_of = first_reader(self.method, self.slots), name_reader(self.method)
        items_of = items_reader(self.method, self.slots)

        async def answer(stream: Any) -> None:
            request = await stream.recv_message()
            if request is None:
                raise missing(self.method.path)
            keywords = await self.read_offloaded(stream, request, partial(read, request)) | items_of(stream, request)
            info = self.info(stream, name_of(request), keywords)
            async with self.target.call(info) as instance:
                await stream.send_initial_metadata(metadata=info.reply_metadata)
                function = getattr(instance, self.method.name, None)
                if function is None:
                    raise _not_implemented(instance, info)
                try:
                    result = await function(**keywords)
                except NotImplementedError as error:
                    raise _not_implemented(instance, info, error) from error
                reply = self.encoded(instance, info, result)
            await stream.send_message(reply)

        return answer

    def bidirectional(self) -> Callable[[Any], Any]:
        """Return the handler function of a bidirectional RPC."""
        streamed = self.method.streamed
        assert streamed is not None
        if not streamed.item:

            async def converse(stream: Any) -> None:
                keywords = {streamed.argument: Requests(stream)}
                await self.send_all(stream, self.info(stream, "", keywords), keywords)

            return converse
        read, name_of = first_reader(self.method, self.slots), name_reader(self.method)
        items_of = items_reader(self.method, self.slots)

        async def answer(stream: Any) -> None:
            request = await stream.recv_message()
            if request is None:
                raise missing(self.method.path)
            keywords = await self.read_offloaded(stream, request, partial(read, request)) | items_of(stream, request)
            await self.send_all(stream, self.info(stream, name_of(request), keywords), keywords)

        return answer

    async def send_all(self, stream: Any, info: CallInfo, keywords: dict[str, Any]) -> None:
        """Send the results that the method yields. The generator is always closed."""
        async with self.target.call(info) as instance:
            await stream.send_initial_metadata(metadata=info.reply_metadata)
            function = getattr(instance, self.method.name, None)
            if function is None:
                raise _not_implemented(instance, info)
            try:
                results = function(**keywords)
            except NotImplementedError as error:
                raise _not_implemented(instance, info, error) from error
            if not hasattr(results, "__aiter__"):
                if inspect.iscoroutine(results):
                    results.close()
                raise _driver_bug(instance, info, FitError("an async generator", results))
            async with aclosing(_closable(results)) as items:
                try:
                    async for item in items:
                        await stream.send_message(self.encoded(instance, info, item))
                except NotImplementedError as error:
                    raise _not_implemented(instance, info, error) from error

    async def read_offloaded(self, stream: Any, request: Any, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Convert the request with `read`, run by the target's `offload` if it has one."""
        offload = getattr(self.target, "offload", None)
        return read() if offload is None else await offload(stream, self.method.path, request, read)

    def info(self, stream: Any, name: str, keywords: dict[str, Any]) -> CallInfo:
        """Return the description of a streaming call for the target."""
        method = self.method
        return CallInfo(
            self.api,
            name,
            method.name,
            method.path,
            method.monitored,
            True,
            stream.metadata,
            stream.identity,
            stream.peer,
            arguments=keywords,
            call=stream,
        )

    def encoded(self, instance: object, info: CallInfo, result: Any) -> Any:
        """Convert `result` to a reply; MachineError (INTERNAL) if it does not fit."""
        try:
            return self.encode(result)
        except FitError as error:
            raise _driver_bug(instance, info, error) from None


async def _all(results: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for item in results:
        yield item


def _closable(results: Any) -> Any:
    return results if hasattr(results, "aclose") else _all(results)


def _serialized(encode: Callable[[Any], Any], result: object) -> tuple[Any, bytes]:
    """Return the reply and its bytes, so that both can be made off the event loop."""
    reply = encode(result)
    return reply, serialize_in_steps(reply)


def _encoder(method: Method, hint: Hint) -> Callable[[Any], Any]:
    """Return a function that converts a result to a new reply."""
    cls, fields = method.reply_class, method.reply.fields
    if not fields:
        return lambda result: cls()
    whole = method.is_whole(hint)
    fill = message_fill(method.reply) if whole else field_filler(fields[0])
    may_be_none = not whole and hint.optional and fields[0].has_presence

    def encode(result: Any) -> Any:
        reply = cls()
        if result is not None or not may_be_none:
            try:
                fill(reply, result)
            except RecursionError:
                raise FitError("a value that does not contain itself", type(result)) from None
        return reply

    return encode


def _not_implemented(instance: object, info: CallInfo, error: NotImplementedError | None = None) -> MachineError:
    more = f": {error}" if error is not None and str(error) else ""
    return MachineError(
        f"{_describe(instance, info)} does not implement {info.method}{more}", kind=ErrorKind.UNSUPPORTED
    )


def _driver_bug(instance: object, info: CallInfo, error: FitError) -> MachineError:
    text = f"{_describe(instance, info)} returned a result from {info.method} that its API does not allow: {error}"
    _log.error(text, method=info.rpc)
    return MachineError(text, kind=ErrorKind.INTERNAL)


def _describe(instance: object, info: CallInfo) -> str:
    """Return the full name and model of a resource, or the name of a machine-wide service."""
    if info.api is None:
        return info.rpc.rpartition("/")[0].lstrip("/")
    return f"{info.api}/{info.name} ({getattr(instance, 'MODEL', None) or type(instance).__name__})"
