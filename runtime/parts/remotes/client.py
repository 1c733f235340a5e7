"""Calls to one remote within a session. If this machine disappears, the remote stops what it commanded there."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import trio
from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError, StreamTerminatedError

from engine.calls import EXPIRED, INTRODUCTION_KEY, SESSION_KEY, Introduction, parse_introduction
from engine.planning import MACHINES_KEY, RemoteReport
from rpc import to_machine_error, within
from rpc.api import ApiClient, build_request, find_method
from rpc.client import Channel
from schema import API, ErrorKind, MachineError, ResourceName

ROBOT: Final = "viam.robot.v1.RobotService"

T = TypeVar("T")


@dataclass
class RemoteSession:
    """This machine's session with a remote, across connections."""

    id: str = ""  # empty: not started, or the remote does not support sessions
    window: float = 0.0  # maximum seconds between two heartbeats
    commanded: set[tuple[API, str]] = field(default_factory=set)  # resources that may be moving because of this machine


class RemoteClient(ApiClient):
    """An ApiClient over `channel` to the remote named `remote`. Errors of the connection contain that name."""

    def __init__(self, remote: str, channel: Channel, session: RemoteSession) -> None:
        super().__init__(channel)
        self.session = session
        self.doubt = trio.Event()  # an answer suggests that the known state of the remote is outdated
        self._remote = remote
        self._robot = ApiClient(channel)
        self._renewing = trio.Lock()

    # ---- calls to its resources

    async def call_as(self, base: type, name: str, method: str, /, **arguments: Any) -> Any:
        """Call a method of the API of `base` and return its result.

        If the session has expired, renew it and call once more.
        """

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
            raise self._for_clients(error) from error
        if method == "stop":
            self.session.commanded.discard((base.API, name))  # type: ignore[attr-defined]
        return result

    async def stream_as(self, base: type, name: str, method: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Call a method of the API of `base` and yield its results.

        If the session has expired, renew it and raise UNAVAILABLE.
        """
        self._note(base.API, name, method)  # type: ignore[attr-defined]
        try:
            async with aclosing(super().stream_as(base, name, method, **arguments)) as items:
                async for item in items:
                    yield item
        except MachineError as error:
            if _expired(error):
                await self.renew(self.session.id)
            raise self._for_clients(error) from error

    def has_commanded(self, api: API, name: str) -> bool:
        """Return whether a resource was commanded to move in the current session and not stopped since."""
        return (api, name) in self.session.commanded

    def _note(self, api: API, name: str, method: str) -> None:
        if find_method(api, method).monitored:
            self.session.commanded.add((api, name))

    def _for_clients(self, error: MachineError) -> MachineError:
        """Convert an error for the clients of this machine."""
        kind, message = error.kind, error.message
        if kind in (ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND):
            self.doubt.set()
        if _expired(error):  # clients have sessions with this machine, which have not expired
            return self.unavailable("this machine's session there has expired: try again")
        if kind is ErrorKind.UNAUTHENTICATED:
            return self.unavailable(f"it rejects the credentials of this machine: {message}")
        return self.unavailable(message) if kind is ErrorKind.UNAVAILABLE else error

    def unavailable(self, reason: str) -> MachineError:
        """Return an UNAVAILABLE error with the name of the remote."""
        return MachineError(f"remote {self._remote!r}: {reason}", kind=ErrorKind.UNAVAILABLE)

    # ---- the session

    async def resume(self) -> None:
        """Resume the session of an earlier connection, or start one, if the remote supports sessions."""
        session = self.session
        try:
            started = await self._robot.call(ROBOT, "", "start_session", resume=session.id)
        except MachineError as error:
            if error.kind is not ErrorKind.UNSUPPORTED:
                raise
            self._metadata = {}
            return
        if started["id"] != session.id:
            session.commanded.clear()  # the remote has stopped everything when the old session expired
        session.id, session.window = started["id"], started["heartbeat_window"].total_seconds()
        self._metadata = {SESSION_KEY: session.id}

    async def renew(self, expired: str) -> None:
        """Replace the session `expired`, unless another task has already done so."""
        async with self._renewing:
            if self.session.id == expired:
                await self.resume()

    async def beat(self) -> None:
        """Send a heartbeat; renew the session if it has expired."""
        try:
            await self._robot.call(ROBOT, "", "send_session_heartbeat", id=self.session.id)
        except MachineError as error:
            if not _expired(error):
                raise
            await self.renew(self.session.id)

    # ---- other paths

    async def introduction(self) -> Introduction | None:
        """Return how to reach the remote directly; None if it does not offer that. Through the cloud only."""
        asking = ApiClient(self._channel, metadata={INTRODUCTION_KEY: "1"})
        _, metadata = await asking.call_with_metadata(ROBOT, "", "get_version")
        return parse_introduction(str(metadata.get(INTRODUCTION_KEY, "")))

    # ---- resources and status

    async def read_report(self) -> RemoteReport:
        """Return the resources and the status of the remote."""
        ready, machines = await self._names()
        try:
            status = await self._robot.call(ROBOT, "", "get_machine_status")
        except MachineError as error:
            if error.kind is not ErrorKind.UNSUPPORTED:
                raise
            return RemoteReport(ready, machines=machines)
        return RemoteReport(ready, problems_of(status), status.get("state") == "INITIALIZING", machines)

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
        names = (
            _name(API(resource.namespace, resource.type, resource.subtype), resource.name)
            for resource in reply.resources
        )
        return frozenset(names), _machines((stream.initial_metadata or {}).get(MACHINES_KEY, ""))


def problems_of(status: Mapping[str, Any]) -> dict[ResourceName, str]:
    """Return the resources that are configured but not ready, with reasons, from a GetMachineStatus response."""
    problems = {}
    for resource in status.get("resources", ()):
        if resource["state"] != "READY":
            name, error = ResourceName.parse(str(resource["name"])), resource.get("error", "")
            problems[name] = f"{resource['state'].lower()}{': ' if error else ''}{error}"
    return problems


def _name(api: API, text: str) -> ResourceName:
    *remotes, name = text.split(":")
    return ResourceName(api, name, tuple(remotes))


def _machines(text: str) -> Mapping[str, str]:
    """Parse the value of MACHINES_KEY. Invalid values count as empty."""
    try:
        machines = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in machines.items()} if isinstance(machines, dict) else {}


def _expired(error: MachineError) -> bool:
    return error.kind is ErrorKind.INVALID and error.message == EXPIRED


async def answered(question: Callable[[], Awaitable[T]], limit: float) -> T:
    """Return the result of `question`. Raises MachineError (UNAVAILABLE) if it takes over `limit` seconds."""
    try:
        return await within(limit, question)
    except trio.TooSlowError:
        raise MachineError(f"no answer within {limit:g} s", kind=ErrorKind.UNAVAILABLE) from None
