"""Requests of a call into the keyword arguments of a Python method."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from rpc.api.decode import field_reader, keywords_reader
from rpc.api.fit import FitError
from rpc.api.hints import ANY, Slot
from rpc.api.methods import Method
from schema.errors import ErrorKind, MachineError

Keywords: TypeAlias = Callable[[Any], dict[str, Any]]
"""Reads a request into keyword arguments; raises MachineError (INVALID) that names the field."""

Slots: TypeAlias = Mapping[str, Slot]


def missing(path: str) -> MachineError:
    """The client ended its side before it sent a request."""
    return MachineError(f"{path}: the request is missing", kind=ErrorKind.INVALID)


def name_reader(method: Method) -> Callable[[Any], str]:
    """Reads the name of the resource from the first request; "" for a machine-wide service."""
    field, streamed = method.name_field, method.streamed
    if not field:
        return lambda request: ""
    if streamed is not None and streamed.init and field not in method.request.fields_by_name:
        field = f"{streamed.init}.{field}"
    return attrgetter(field)


def reader(method: Method, slots: Slots) -> Keywords:
    """Reads the only request."""
    return _guarded(keywords_reader(method.arguments, slots))


def first_reader(method: Method, slots: Slots) -> Keywords:
    """Reads the first of many requests."""
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
            found: dict[str, Any] = read(request)
            return found
        except FitError as error:
            raise _invalid(error) from None
        except (ValueError, TypeError) as error:  # of a class that checks its own fields
            raise MachineError(str(error), kind=ErrorKind.INVALID) from error

    return guarded


def items_reader(method: Method, slots: Slots) -> Callable[[Any, Any], dict[str, Any]]:
    """Makes the argument that iterates over what the requests of a stream hold, from the first on."""
    streamed = method.streamed
    assert streamed is not None
    slot = slots.get(streamed.argument, Slot(ANY, required=True))
    kind = _ItemKind(method, field_reader(method.item, slot.hint.stream or ANY))

    def items_of(stream: Any, first: Any) -> dict[str, Any]:
        return {kind.argument: _Items(stream, first, kind)}

    return items_of


class _ItemKind:
    """Where the items of one client-streaming RPC are, and how they are read."""

    def __init__(self, method: Method, read: Callable[[Any], Any]) -> None:
        assert method.streamed is not None
        self.argument = method.streamed.argument
        self.read = read
        self._init = method.streamed.init
        self._item = method.item.name
        self._has_presence = method.item.has_presence
        self._aside = method.streamed.aside
        self._read_aside = field_reader(method.request.fields_by_name[self._aside]) if self._aside else None

    def take_aside(self, request: Any) -> Any:
        """What a later request holds aside, removed from it; None if it holds nothing there."""
        if self._read_aside is None or not request.HasField(self._aside):
            return None
        found = self._read_aside(request)
        request.ClearField(self._aside)
        return found

    def holds(self, request: Any) -> bool:
        """Whether the request holds an item; without presence an empty one counts as none."""
        return bool(request.HasField(self._item) if self._has_presence else getattr(request, self._item))

    def begins(self, request: Any) -> bool:
        """Whether the request is one that only the first may be."""
        return bool(self._init) and bool(request.HasField(self._init))


class _Items:
    """Items of one call, one after the other; ends when the client has sent its last request."""

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
                    raise MachineError("the stream was begun a second time", kind=ErrorKind.INVALID)
                if (aside := self._kind.take_aside(request)) is not None:
                    self._first = request
                    return aside
            if self._kind.holds(request):
                try:
                    return self._kind.read(request)
                except FitError as error:
                    raise _invalid(error) from None


def _invalid(error: FitError) -> MachineError:
    return MachineError(str(error), kind=ErrorKind.INVALID)
