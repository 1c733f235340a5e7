"""Conversion of requests to the keyword arguments of a Python method."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from rpc.api.convert.decode import field_reader, keywords_reader
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import ANY, Slot
from rpc.api.methods import Method
from schema import ErrorKind, MachineError

Keywords: TypeAlias = Callable[[Any], dict[str, Any]]
"""Function that converts a request to keyword arguments; MachineError (INVALID) names an invalid field."""

Slots: TypeAlias = Mapping[str, Slot]


def missing(path: str) -> MachineError:
    """Return the error for a client that ended its side before sending a request."""
    return MachineError(f"{path}: the request is missing", kind=ErrorKind.INVALID)


def name_reader(method: Method) -> Callable[[Any], str]:
    """Return a function that reads the resource name from the first request; "" for a machine-wide service."""
    field, streamed = method.name_field, method.streamed
    if not field:
        return lambda request: ""
    if streamed is not None and streamed.init and field not in method.request.fields_by_name:
        field = f"{streamed.init}.{field}"
    return attrgetter(field)


def reader(method: Method, slots: Slots) -> Keywords:
    """Return the reader of the single request of a call."""
    return _guarded(keywords_reader(method.arguments, slots))


def first_reader(method: Method, slots: Slots) -> Keywords:
    """Return the reader of the first request of a client stream."""
    streamed = method.streamed
    assert streamed is not None
    outer = {name: f for name, f in method.arguments.items() if f.containing_type is method.request}
    read_outer = keywords_reader(outer, slots)
    if not (init := streamed.init):
        return _guarded(read_outer)
    read_init = keywords_reader({name: f for name, f in method.arguments.items() if name not in outer}, slots)

    def read(request: Any) -> dict[str, Any]:
        if not request.HasField(init):
            raise FitError(f"{init} in the first request", request)
        return {**read_outer(request), **read_init(getattr(request, init))}

    return _guarded(read)


def _guarded(read: Callable[[Any], Any]) -> Keywords:
    def guarded(request: Any) -> dict[str, Any]:
        try:
            keywords: dict[str, Any] = read(request)
            return keywords
        except FitError as error:
            raise _invalid(error) from None
        except (ValueError, TypeError) as error:  # from a class that validates its fields
            raise MachineError(str(error), kind=ErrorKind.INVALID) from error

    return guarded


def items_reader(method: Method, slots: Slots) -> Callable[[Any, Any], dict[str, Any]]:
    """Return a function that creates the argument which iterates over the items of a client stream."""
    streamed = method.streamed
    assert streamed is not None
    slot = slots.get(streamed.argument, Slot(ANY, required=True))
    kind = _ItemKind(method, field_reader(method.item, slot.hint.stream or ANY))

    def items_of(stream: Any, first: Any) -> dict[str, Any]:
        return {kind.argument: _Items(stream, first, kind)}

    return items_of


class Requests:
    """Async iterator over the requests of one call; ends when the client has sent its last request."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        request = await self._stream.recv_message()
        if request is None:
            raise StopAsyncIteration
        return request


class _ItemKind:
    """Location and reader of the items of one client-streaming RPC."""

    def __init__(self, method: Method, read: Callable[[Any], Any]) -> None:
        assert method.streamed is not None
        self.argument = method.streamed.argument
        self.read = read
        self._init = method.streamed.init
        self._item = method.item.name
        self._has_presence = method.item.has_presence
        self._struct = method.streamed.struct
        self._read_struct = field_reader(method.request.fields_by_name[self._struct]) if self._struct else None

    def take_struct(self, request: Any) -> Any:
        """Remove and return the item in the Struct field of a later request; None if it is absent."""
        if self._read_struct is None or not request.HasField(self._struct):
            return None
        item = self._read_struct(request)
        request.ClearField(self._struct)
        return item

    def holds(self, request: Any) -> bool:
        """Return True if the request has an item. For a field without presence, an empty item does not count."""
        return bool(request.HasField(self._item) if self._has_presence else getattr(request, self._item))

    def begins(self, request: Any) -> bool:
        """Return True if the request has the `init` message, which only the first request may have."""
        return bool(self._init) and bool(request.HasField(self._init))


class _Items:
    """Async iterator over the items of one call; ends when the client has sent its last request."""

    def __init__(self, stream: Any, first: Any, kind: _ItemKind) -> None:
        self._stream = stream
        self._first = first
        self._kind = kind

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while True:
            request, self._first = self._first, None
            if request is None:
                request = await self._stream.recv_message()
                if request is None:
                    raise StopAsyncIteration
                if self._kind.begins(request):
                    raise MachineError("the stream was started a second time", kind=ErrorKind.INVALID)
                if (item := self._kind.take_struct(request)) is not None:
                    self._first = request
                    return item
            if self._kind.holds(request):
                try:
                    return self._kind.read(request)
                except FitError as error:
                    raise _invalid(error) from None


def _invalid(error: FitError) -> MachineError:
    return MachineError(str(error), kind=ErrorKind.INVALID)
