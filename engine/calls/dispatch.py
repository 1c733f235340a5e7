"""Dispatch: passes each call to its driver, within operation, session, limits, deadline and lifetime of the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, TypeAlias

from engine.calls.large_messages import LargeMessages
from engine.calls.operations import OPERATION_KEY, Operation, OperationEntry
from engine.calls.places import Places
from engine.calls.ranges import check_ranges
from engine.calls.sessions import MONITORED_KEY, SESSION_KEY, Session
from engine.calls.traffic import Traffic
from engine.host import ResourceHost, Use
from engine.roster import Roster
from rpc import Limits
from rpc.api import CallInfo
from schema import ErrorKind, MachineError
from schema.decoding import did_you_mean

UNARY_LIMIT: Final = 600.0  # seconds, for a unary call whose client sets no deadline; reference: 10 min
STREAM_LIMIT: Final = float("inf")
HELD: Final = frozenset({"/viam.component.inputcontroller.v1.InputControllerService/TriggerEvent"})
"""Methods whose effect lasts only as long as the connection of a client without a session."""
REQUESTS_LIMIT: Final = 4 * Limits().max_streams
"""Maximum number of calls in progress per resource, of all clients together.

A client that keeps to the stream limit of its connection stays within its share (see Places), even while the same
number of its cancelled calls still clean up. Three such clients fit at the same time.
"""
UNLIMITED: Final = frozenset(
    {
        "log",
        "send_traces",
        "tunnel",
        # Calls that can end an overload must get through when all places are taken.
        "cancel_operation",
        "get_operations",
        "send_session_heartbeat",
        "stop",
        "stop_all",
    }
)
"""Methods that are not limited in number."""

Service = Callable[[CallInfo, Operation], object]
"""Creates the object whose method answers a call to a machine-wide service."""

Place: TypeAlias = "tuple[str, Hashable]"
"""A place that a call occupies: the resource and the client."""


class Dispatch:
    """The Target for all APIs of a machine; `services` holds the machine-wide ones by protobuf service name."""

    def __init__(self, roster: Roster, traffic: Traffic, *, requests_limit: int = REQUESTS_LIMIT) -> None:
        self.roster = roster
        self.traffic = traffic
        self.large = LargeMessages()
        self.offload = self.large.read
        self.services: dict[str, Service] = {}
        self.requests_limit = requests_limit
        # Of resources with calls in progress, by full name; "" is the machine itself.
        self._places: dict[str, Places] = {}

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        """Return a context manager around a call; entering it raises MachineError if the call is not possible now."""
        return _ResourceCall(self, request) if request.api is not None else _MachineCall(self, request)

    def host(self, request: CallInfo) -> ResourceHost:
        """Return the ready resource that `request` calls.

        Raises MachineError: NOT_FOUND with similar names or the API under which the name exists, UNAVAILABLE with state
        and reason.
        """
        roster = self.roster
        full = f"{request.api}/{request.name}"
        host = roster.hosts.get(full)
        if host is not None:
            return host
        if full in roster.planned:
            raise roster.not_ready(full)
        if full in roster.aliases:
            return roster.find(full)
        same_api = [resource.name.short for resource in roster.planned.values() if resource.name.api == request.api]
        others = [str(resource.name.api) for resource in roster.planned.values() if resource.name.short == request.name]
        if others:
            remedy = f"{request.name!r} is a {' and a '.join(others)}"
        else:
            remedy = did_you_mean(request.name, same_api) or (f"there is no {request.api} on this machine")
        raise MachineError(f"no {request.api} named {request.name!r}", kind=ErrorKind.NOT_FOUND, remedy=remedy)

    def session(self, request: CallInfo) -> Session | None:
        """Return the session that the request names, if any.

        Raises MachineError (INVALID, message EXPIRED) if it has ended or belongs to another client.
        """
        sid = request.metadata.get(SESSION_KEY)
        return self.traffic.sessions.find(sid, owner_of(request)) if sid else None

    def enter(self, request: CallInfo, resource: str, session: Session | None) -> OperationEntry:
        """Begin the operation of this call."""
        return self.traffic.operations.enter(
            request.rpc,
            resource=resource,
            session=session.id if session else "",
            opid=request.metadata.get(OPERATION_KEY),
            arguments=request.arguments,
            seconds=STREAM_LIMIT if request.streaming else UNARY_LIMIT,
        )

    def place(self, request: CallInfo, resource: str, session: Session | None) -> Place:
        """Take a place at a resource ("" is the machine itself) for the caller.

        A client is identified by its session if it has one, else by its connection. Raises MachineError (EXHAUSTED),
        which lists the clients and methods that hold the places.
        """
        client = session if session is not None else id(request.peer)
        places = self._places.get(resource)
        if places is None:
            places = self._places[resource] = Places(self.requests_limit)
        if not places.take(client, request.identity, request.peer):
            raise self._exhausted(resource, places.refusal(client))
        return resource, client

    def leave(self, place: Place | None) -> None:
        """Give a place back; None means that the call did not take any."""
        if place is None:
            return
        resource, client = place
        places = self._places[resource]
        places.give_back(client)
        if not places.taken:
            del self._places[resource]

    def _exhausted(self, resource: str, reason: str) -> MachineError:
        count_by_method = Counter(
            operation.method.rpartition("/")[2]
            for operation in self.traffic.operations.running()
            if operation.resource == resource
        )
        summary = ", ".join(f"{count} {method}" for method, count in count_by_method.most_common(5))
        return MachineError(
            f"{resource or 'the machine itself'} has {reason} ({summary})",
            kind=ErrorKind.EXHAUSTED,
            remedy="wait for some to end, or cancel them (GetOperations lists them)",
        )


class _ResourceCall:
    """A call to a resource."""

    __slots__ = ("_dispatch", "_entry", "_host", "_place", "_request", "_use")
    _entry: OperationEntry
    _host: ResourceHost
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
            use = host.use(entry.scope)
            driver = await use.__aenter__()
        except BaseException:
            dispatch.leave(place)
            raise
        self._host, self._use, self._entry = host, use, entry
        request.reply_metadata[OPERATION_KEY] = entry.operation.id
        if request.monitored:
            dispatch.traffic.sessions.command(full, session)
            if session is not None:
                request.reply_metadata[MONITORED_KEY] = full
            elif request.rpc in HELD and request.peer is not None:
                dispatch.traffic.sessions.follow(full, request.peer.farewell)
        entry.__enter__()
        return driver

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._dispatch.leave(self._place)
        try:
            self._entry.__exit__(kind, error, traceback)
        except BaseException as left:  # also what the driver raised while it was cancelled, in a group
            await self._use.__aexit__(type(left), left, left.__traceback__)
            if isinstance(left, MachineError) and not self._host.is_open and not self._entry.operation.cancelled:
                raise self._host.closed_error() from None
            raise
        return await self._use.__aexit__(kind, error, traceback)


class _MachineCall:
    """A call to a machine-wide service."""

    __slots__ = ("_dispatch", "_entry", "_place", "_request")
    _entry: OperationEntry
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
            handler = dispatch.services[service](request, self._entry.operation)
        except BaseException:
            dispatch.leave(place)
            raise
        self._entry.__enter__()
        return handler

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._dispatch.leave(self._place)
        self._entry.__exit__(kind, error, traceback)


def owner_of(request: CallInfo) -> str:
    """Return the authenticated entity of the caller; empty on a server without authentication."""
    return str(request.identity.entity) if request.identity is not None else ""
