"""Calls to one remote, in a session of ours: should this machine vanish, the remote stops what we commanded there."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import trio
from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.api.client import ApiClient, build_request, find_method
from rpc.client import Channel
from rpc.silence import within
from rpc.status import to_machine_error
from runtime.remotes.names import MACHINES_KEY, Report
from runtime.sessions import EXPIRED, SESSION_KEY
from schema.errors import ErrorKind, MachineError
from schema.names import API, ResourceName

ROBOT: Final = "viam.robot.v1.RobotService"

T = TypeVar("T")


@dataclass
class RemoteSession:
    """Our session with a remote, over all connections to it."""

    id: str = ""  # empty: none yet, or the remote has none
    window: float = 0.0  # seconds that we may be silent
    commanded: set[tuple[API, str]] = field(default_factory=set)  # what moves, or may, because of us


class RemoteClient(ApiClient):
    """As ApiClient, over `channel` to the remote called `remote`. Errors say where they come from."""

    def __init__(self, remote: str, channel: Channel, session: RemoteSession) -> None:
        super().__init__(channel)
        self.session = session
        self.doubt = trio.Event()  # an answer was such that what is known of the remote may be wrong
        self._remote = remote
        self._robot = ApiClient(channel)
        self._renewing = trio.Lock()

    # ---- calls to its resources

    async def call_as(self, base: type, name: str, method: str, /, **arguments: Any) -> Any:
        """As ApiClient."""

        async def call() -> Any:
            return await super(RemoteClient, self).call_as(base, name, method, **arguments)

        self._note(base.API, name, method)  # type: ignore[attr-defined]
        try:
            try:
                result = await call()
            except MachineError as error:
                if not _expired(error) or find_method(base.API, method).streamed is not None:  # type: ignore[attr-defined]
                    raise
                await self.renew(self.session.id)
                self._note(base.API, name, method)  # type: ignore[attr-defined]
                result = await call()
        except MachineError as error:
            raise self._told(error) from error
        if method == "stop":
            self.session.commanded.discard((base.API, name))  # type: ignore[attr-defined]
        return result

    async def stream_as(self, base: type, name: str, method: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """As ApiClient."""
        self._note(base.API, name, method)  # type: ignore[attr-defined]
        try:
            async with aclosing(super().stream_as(base, name, method, **arguments)) as items:
                async for item in items:
                    yield item
        except MachineError as error:
            if _expired(error):
                await self.renew(self.session.id)
            raise self._told(error) from error

    def has_commanded(self, api: API, name: str) -> bool:
        """Whether a resource was told to move, and not to stop since, in the session that lasts."""
        return (api, name) in self.session.commanded

    def _note(self, api: API, name: str, method: str) -> None:
        if find_method(api, method).monitored:
            self.session.commanded.add((api, name))

    def _told(self, error: MachineError) -> MachineError:
        """The error as our own clients should read it."""
        kind, message = error.kind, error.message
        if kind in (ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND):
            self.doubt.set()
        if _expired(error):  # their sessions are with us and live
            return self.unavailable("our session has just expired there: try again")
        if kind is ErrorKind.UNAUTHENTICATED:
            return self.unavailable(f"it refuses this machine: {message}")
        return self.unavailable(message) if kind is ErrorKind.UNAVAILABLE else error

    def unavailable(self, reason: str) -> MachineError:
        """UNAVAILABLE with the name of the remote."""
        return MachineError(f"remote {self._remote!r}: {reason}", kind=ErrorKind.UNAVAILABLE)

    # ---- the session

    async def resume(self) -> None:
        """Go on with the session of an earlier connection, or begin one. A remote without sessions has none."""
        session = self.session
        try:
            started = await self._robot.call(ROBOT, "", "start_session", resume=session.id)
        except MachineError as error:
            if error.kind is not ErrorKind.UNSUPPORTED:
                raise
            self._metadata = {}
            return
        if started["id"] != session.id:
            session.commanded.clear()  # the remote has stopped it all when the old one expired
        session.id, session.window = started["id"], started["heartbeat_window"].total_seconds()
        self._metadata = {SESSION_KEY: session.id}

    async def renew(self, expired: str) -> None:
        """Begin another session unless somebody has done so since `expired` was the present one."""
        async with self._renewing:
            if self.session.id == expired:
                await self.resume()

    async def beat(self) -> None:
        """Tell the remote that we live."""
        try:
            await self._robot.call(ROBOT, "", "send_session_heartbeat", id=self.session.id)
        except MachineError as error:
            if not _expired(error):
                raise
            await self.renew(self.session.id)

    # ---- what it has

    async def look(self) -> Report:
        """Ask the remote what it has and how it is."""
        ready, machines = await self._names()
        try:
            status = await self._robot.call(ROBOT, "", "get_machine_status")
        except MachineError as error:
            if error.kind is not ErrorKind.UNSUPPORTED:
                raise
            return Report(ready, machines=machines)
        return Report(ready, troubles_of(status), status.get("state") == "INITIALIZING", machines)

    async def _names(self) -> tuple[frozenset[ResourceName], Mapping[str, str]]:
        method = find_method(ROBOT, "resource_names")
        try:
            async with self._channel.request(
                method.path, Cardinality.UNARY_UNARY, method.request_class, method.reply_class
            ) as stream:
                await stream.send_message(build_request(method, "", {}), end=True)
                reply = await stream.recv_message()
        except GRPCError as error:
            raise to_machine_error(error) from None
        except (StreamTerminatedError, OSError) as error:
            raise MachineError(f"the connection was lost: {error}", kind=ErrorKind.UNAVAILABLE) from error
        names = (_name(API(one.namespace, one.type, one.subtype), one.name) for one in reply.resources)
        return frozenset(names), _machines((stream.initial_metadata or {}).get(MACHINES_KEY, ""))


def troubles_of(status: Mapping[str, Any]) -> dict[ResourceName, str]:
    """What is configured on a machine and not ready, and why, from its GetMachineStatus."""
    troubles = {}
    for one in status.get("resources", ()):
        if one["state"] != "READY":
            name = ResourceName.parse(str(one["name"]))
            troubles[name] = f"{one['state'].lower()}{': ' if one.get('error') else ''}{one.get('error', '')}"
    return troubles


def _name(api: API, text: str) -> ResourceName:
    *remotes, name = text.split(":")
    return ResourceName(api, name, tuple(remotes))


def _machines(text: str) -> Mapping[str, str]:
    """Reads MACHINES_KEY; what is not understood says nothing."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _expired(error: MachineError) -> bool:
    return error.kind is ErrorKind.INVALID and error.message == EXPIRED


async def answered(question: Callable[[], Awaitable[T]], limit: float) -> T:
    """Return the answer; MachineError (UNAVAILABLE) if there is none `within` so many seconds."""
    try:
        return await within(limit, question)
    except trio.TooSlowError:
        raise MachineError(f"no answer within {limit:g} s", kind=ErrorKind.UNAVAILABLE) from None
