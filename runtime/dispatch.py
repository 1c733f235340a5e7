"""Dispatch: from a call to its driver, bracketed by operation, session, limit, deadline and the life of the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, TypeAlias

from rpc.api.target import CallInfo
from rpc.limits import Limits
from runtime.aside import Aside
from runtime.host import ResourceHost, Use
from runtime.machine import Machine
from runtime.operations import OPERATION_KEY, Entry, Operation
from runtime.places import Places
from runtime.ranges import check_ranges
from runtime.sessions import MONITORED_KEY, SESSION_KEY, Session
from schema.errors import ErrorKind, MachineError
from schema.report import did_you_mean

UNARY_LIMIT: Final = 600.0  # seconds a unary call may take if its client sets no deadline; reference: 10 min
STREAM_LIMIT: Final = float("inf")
REQUESTS_LIMIT: Final = 4 * Limits().max_streams
"""Calls in flight per resource, of all clients together.

A client that keeps to the streams of its connection fits into its share (see Places), even while as many calls that it
has cancelled still clean up. Three such clients fit beside each other.
"""
UNLIMITED: Final = frozenset(
    {
        "log",
        "send_traces",
        "tunnel",
        # What ends trouble is let in when everything is taken.
        "cancel_operation",
        "get_operations",
        "send_session_heartbeat",
        "stop",
        "stop_all",
    }
)
"""Methods that need no place."""

Service = Callable[[CallInfo, Operation], object]
"""Makes the object whose method answers one call to a machine-wide service."""

Place: TypeAlias = "tuple[str, Hashable]"
"""What is called, and by whom."""


class Dispatch:
    """The Target of every API of one machine; `services` are the machine-wide ones by protobuf service name."""

    def __init__(self, machine: Machine, *, requests_limit: int = REQUESTS_LIMIT) -> None:
        self.machine = machine
        self.large = Aside()
        self.aside = self.large.read
        self.services: dict[str, Service] = {}
        self.requests_limit = requests_limit
        self._places: dict[
            str, Places
        ] = {}  # of what is being called, by full name; the machine itself has the name ""

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        """Bracket one call; entering raises MachineError if there is nothing to call, or not now."""
        return _ResourceCall(self, request) if request.api is not None else _MachineCall(self, request)

    def host(self, request: CallInfo) -> ResourceHost:
        """The ready resource that `request` is for.

        Raises MachineError: NOT_FOUND with near names or the API under which the name exists, UNAVAILABLE with state
        and reason.
        """
        machine = self.machine
        full = f"{request.api}/{request.name}"
        host = machine.hosts.get(full)
        if host is not None:
            return host
        if full in machine.wanted:
            raise machine.not_ready(full)
        if full in machine.aliases:
            return machine.find(full)
        same_api = [one.name.short for one in machine.wanted.values() if one.name.api == request.api]
        others = [str(one.name.api) for one in machine.wanted.values() if one.name.short == request.name]
        if others:
            remedy = f"{request.name!r} is a {' and a '.join(others)}"
        else:
            remedy = did_you_mean(request.name, same_api) or (f"there is no {request.api} on this machine")
        raise MachineError(f"no {request.api} named {request.name!r}", kind=ErrorKind.NOT_FOUND, remedy=remedy)

    def session(self, request: CallInfo) -> Session | None:
        """The session that the caller claims; MachineError (INVALID, EXPIRED) if it is not a living one of its own."""
        sid = request.metadata.get(SESSION_KEY)
        return self.machine.sessions.find(sid, owner_of(request)) if sid else None

    def enter(self, request: CallInfo, resource: str, session: Session | None) -> Entry:
        """Begin the operation of this call."""
        return self.machine.operations.enter(
            request.rpc,
            resource=resource,
            session=session.id if session else "",
            opid=request.metadata.get(OPERATION_KEY),
            arguments=request.arguments,
            seconds=STREAM_LIMIT if request.streaming else UNARY_LIMIT,
        )

    def place(self, request: CallInfo, resource: str, session: Session | None) -> Place:
        """Take a place at a resource ("" is the machine itself) for the caller.

        Its session tells who a caller is, else its connection. Raises MachineError (EXHAUSTED) that says who holds the
        places, and with what.
        """
        client = session if session is not None else id(request.peer)
        places = self._places.get(resource)
        if places is None:
            places = self._places[resource] = Places(self.requests_limit)
        if not places.take(client, request.identity, request.peer):
            raise self._exhausted(resource, places.refusal(client))
        return resource, client

    def leave(self, place: Place | None) -> None:
        """Give a place back; None is that of a call that needed none."""
        if place is None:
            return
        resource, client = place
        places = self._places[resource]
        places.give_back(client)
        if not places.taken:
            del self._places[resource]

    def _exhausted(self, resource: str, reason: str) -> MachineError:
        held = Counter(
            one.method.rpartition("/")[2] for one in self.machine.operations.running() if one.resource == resource
        )
        listed = ", ".join(f"{count} {method}" for method, count in held.most_common(5))
        return MachineError(
            f"{resource or 'the machine itself'} has {reason} ({listed})",
            kind=ErrorKind.EXHAUSTED,
            remedy="wait for some to end, or cancel them (GetOperations lists them)",
        )


class _ResourceCall:
    """A call to one resource."""

    __slots__ = ("_dispatch", "_entry", "_place", "_request", "_use")
    _entry: Entry
    _place: Place | None
    _use: Use

    def __init__(self, dispatch: Dispatch, request: CallInfo) -> None:
        self._dispatch = dispatch
        self._request = request

    async def __aenter__(self) -> Any:
        dispatch, request = self._dispatch, self._request
        session = dispatch.session(request)
        host = dispatch.host(request)
        if isinstance(request.arguments, Mapping):
            check_ranges(host.name.api, request.method, request.arguments)
        full = str(host.name)
        self._place = place = None if request.method in UNLIMITED else dispatch.place(request, full, session)
        try:
            entry = dispatch.enter(request, full, session)
            use = host.use()
            driver = await use.__aenter__()
        except BaseException:
            dispatch.leave(place)
            raise
        self._use, self._entry = use, entry
        request.reply_metadata[OPERATION_KEY] = entry.operation.id
        if request.monitored:
            dispatch.machine.sessions.command(full, session)
            if session is not None:
                request.reply_metadata[MONITORED_KEY] = full
        entry.__enter__()
        return driver

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._dispatch.leave(self._place)
        try:
            self._entry.__exit__(kind, error, traceback)
        except MachineError as ours:
            await self._use.__aexit__(type(ours), ours, ours.__traceback__)
            raise
        return await self._use.__aexit__(kind, error, traceback)


class _MachineCall:
    """A call to a machine-wide service."""

    __slots__ = ("_dispatch", "_entry", "_place", "_request")
    _entry: Entry
    _place: Place | None

    def __init__(self, dispatch: Dispatch, request: CallInfo) -> None:
        self._dispatch = dispatch
        self._request = request

    async def __aenter__(self) -> Any:
        dispatch, request = self._dispatch, self._request
        service = request.rpc.strip("/").partition("/")[0]
        self._place = place = None if request.method in UNLIMITED else dispatch.place(request, "", None)
        try:
            self._entry = dispatch.enter(request, "", None)
            request.reply_metadata[OPERATION_KEY] = self._entry.operation.id
            found = dispatch.services[service](request, self._entry.operation)
        except BaseException:
            dispatch.leave(place)
            raise
        self._entry.__enter__()
        return found

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._dispatch.leave(self._place)
        self._entry.__exit__(kind, error, traceback)


def owner_of(request: CallInfo) -> str:
    """Who calls, as authenticated; empty on an open server."""
    return str(request.identity.entity) if request.identity is not None else ""
