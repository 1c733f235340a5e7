"""The connection to one remote: connecting, watching, reconnecting."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import trio
from grpclib.exceptions import GRPCError

from engine.calls import Introduction
from nursery_graph import Restart, back_off, current_node
from rpc import Limits, Peer
from rpc.client import Channel, DialTarget
from rpc.network import watch_changes
from runtime.parts.remotes import direct
from runtime.parts.remotes.client import RemoteClient, answered
from runtime.parts.remotes.dial import Dial, dial
from runtime.parts.remotes.direct import dial_direct
from runtime.parts.remotes.link import RemoteLink
from schema import ErrorKind, MachineError
from support import ChangeSignal, unwrap

ANSWER_LIMIT: Final = 5.0  # seconds for one call, including connecting; then the remote counts as lost
FIRST_ATTEMPT_LIMIT: Final = 2.0  # maximum seconds that the machine's start waits for the resources of the remote
MAX_DELAY: Final = 10.0  # seconds between attempts to connect, unless reconnect_interval is longer
LOST: Final = "the connection was lost"
BEATS: Final = 5  # heartbeats within a session's window, as in official clients
SEEK_INTERVAL: Final = 60.0  # seconds between attempts to connect directly; at random, half or one and a half times
QUIET: Final = 1.0  # seconds after a change of networks: addresses change one by one
DIRECT: Final = "direct"
THROUGH_CLOUD: Final = "through the cloud"
PART: Final = "machine-part"
"""Metadata key of the cloud: the part that is called."""
SOON: Final = 1.0  # seconds until a remote is queried again that is starting or gave a doubtful answer


DirectDial = Callable[[Introduction], Awaitable[trio.abc.Stream]]
"""Opens a stream to a remote that has introduced itself, without the cloud."""

T = TypeVar("T")


@dataclass(slots=True)
class _Connection:
    """A connection to the remote, and the path that it takes."""

    channel: Channel
    client: RemoteClient
    starting: bool  # the remote has not started all of its resources
    path: str  # for people; "" if the remote can have only one
    address: str
    since: float = field(default_factory=trio.current_time)


class RemoteLife:
    """Keeps `link` connected until cancelled.

    A remote that is called through the cloud is asked how to reach it directly. Once that works, calls go directly, and
    those in progress end where they are.
    """

    def __init__(
        self,
        link: RemoteLink,
        *,
        dial: Dial = dial,
        direct: DirectDial = dial_direct,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._link = link
        self._dial = dial
        self._dial_direct = direct
        self._jitter = jitter
        self._tried = trio.Event()  # the first attempt has succeeded or failed

    async def run(self, *, task_status: trio.TaskStatus[RemoteLink]) -> None:
        """Keep the connection until cancelled. Started after the first attempt or FIRST_ATTEMPT_LIMIT seconds."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stay_connected)
            with trio.move_on_after(FIRST_ATTEMPT_LIMIT):
                await self._tried.wait()
            if not self._tried.is_set():
                current_node().unhealthy(self._link.failure)
            task_status.started(self._link)

    async def _stay_connected(self) -> None:
        interval = max(0.001, self._link.remote.reconnect_interval)
        policy = Restart(first_delay=interval, max_delay=max(MAX_DELAY, interval))
        failures = 0
        while True:
            lost = await self._connect_once()
            self._tried.set()
            failures = failures + 1 if lost is None else 1
            if lost is None or lost.path != DIRECT or trio.current_time() - lost.since < MAX_DELAY:
                await trio.sleep(back_off(policy, failures, self._jitter()))
            # otherwise the other path may work

    async def _connect_once(self) -> _Connection | None:
        """Connect once, and serve the connection until it ends. Return it; None if it was not established."""
        link = self._link
        connection: _Connection | None = None
        async with AsyncExitStack() as channels:
            try:
                connection = await self._connect(channels)
                while True:
                    connection = await self._use(connection, channels)
            except MachineError as error:
                # Before the channels close, so that concurrent calls fail with the reason.
                link.closed(error.message)
                current_node().unhealthy(link.failure)
                return connection
            finally:
                link.client = None

    async def _connect(self, channels: AsyncExitStack) -> _Connection:
        """Connect directly if that was possible before, or else by the route. Raises MachineError."""
        link = self._link
        if link.introduction is not None:
            with trio.move_on_after(direct.LIMIT):
                stream = await self._dialled(link.introduction)
                if stream is not None and (connection := await self._direct(stream, link.introduction, channels)):
                    return connection
        route = link.route
        channel = Channel(
            route.address,
            credentials=link.credentials,
            limits=Limits(handshake_timeout=ANSWER_LIMIT),
            connect=_once(partial(self._dial, route)),
            headers=((PART, route.part),) if route.part else (),
        )
        await channels.enter_async_context(channel)
        path = THROUGH_CLOUD if route.part else ""
        return await self._begin(channel, path, route.address, ANSWER_LIMIT)

    async def _direct(
        self, stream: trio.abc.Stream, introduction: Introduction, channels: AsyncExitStack
    ) -> _Connection | None:
        """Continue the session on a direct connection; None, and it is closed, if the remote does not allow that."""
        address = _address(stream)
        async with AsyncExitStack() as attempt:
            attempt.push_async_callback(trio.aclose_forcefully, stream)
            channel = Channel(
                f"https://{address}",
                tls=direct.context(),
                limits=Limits(handshake_timeout=ANSWER_LIMIT),
                connect=_once(partial(_opened_before, stream)),
                headers=(("authorization", f"Bearer {introduction.token}"),),
            )
            await attempt.enter_async_context(channel)
            try:
                connection = await self._begin(channel, DIRECT, address, direct.LIMIT)
            except MachineError as error:
                self._link.log.debug("not connected directly", address=address, reason=error.message)
                return None
            channels.push_async_exit(attempt.pop_all())
            return connection

    async def _begin(self, channel: Channel, path: str, address: str, limit: float) -> _Connection:
        """Start or continue the session, and learn the resources, in `limit` seconds. Raises MachineError."""
        client = RemoteClient(self._link.remote.name, channel, self._link.session)
        starting = await answered(lambda: self._start_session(client), limit)
        return _Connection(channel, client, starting, path, address)

    async def _use(self, connection: _Connection, channels: AsyncExitStack) -> _Connection:
        """Watch a connection until there is a direct one, and return that. Raises the MachineError that ends it."""
        client, channel = connection.client, connection.channel
        self._link.opened(client, connection.path, connection.address)
        current_node().healthy()
        self._tried.set()
        patience = 0.0
        while True:
            streams: list[trio.abc.Stream] = []
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch, channel)
                    nursery.start_soon(self._beat, client)
                    nursery.start_soon(self._poll, client, connection.starting)
                    if connection.path == THROUGH_CLOUD:
                        nursery.start_soon(self._seek, client, patience, streams, nursery.cancel_scope)
            except BaseExceptionGroup as group:
                await _close(streams)
                raise unwrap(group) from None
            introduction = self._link.introduction
            assert introduction is not None
            better = await self._direct(streams[0], introduction, channels)
            if better is not None:
                channel.retire()
                return better
            patience = SEEK_INTERVAL

    async def _seek(
        self, client: RemoteClient, patience: float, streams: list[trio.abc.Stream], scope: trio.CancelScope
    ) -> None:
        """Add a direct connection to `streams` and cancel `scope`, as soon as there is one.

        It is tried after `patience` seconds, when networks of this computer change, and after SEEK_INTERVAL, because
        the other computer may have changed networks.
        """
        changes = ChangeSignal()
        async with trio.open_nursery() as nursery:
            change = changes.next
            nursery.start_soon(watch_changes, changes.announce)
            while True:
                with trio.move_on_after(patience):
                    await change.wait()
                    await trio.sleep(QUIET)
                change, patience = changes.next, SEEK_INTERVAL * (0.5 + self._jitter())
                introduction = await _unless_refused(client.introduction)
                if introduction is None:
                    continue
                self._link.introduction = introduction
                stream = None
                with trio.move_on_after(direct.LIMIT):
                    stream = await self._dialled(introduction)
                if stream is not None:
                    streams.append(stream)
                    scope.cancel()

    async def _dialled(self, introduction: Introduction) -> trio.abc.Stream | None:
        try:
            return await self._dial_direct(introduction)
        except OSError as error:
            self._link.log.debug("no direct connection", reason=str(error))
            return None

    async def _start_session(self, client: RemoteClient) -> bool:
        await client.resume()
        return await self._learn(client)

    async def _learn(self, client: RemoteClient) -> bool:
        report = await client.read_report()
        await self._link.learn(report)
        return report.starting

    async def _watch(self, channel: Channel) -> None:
        with suppress(GRPCError):  # the connection has ended already
            await channel.lost()
        raise MachineError(LOST, kind=ErrorKind.UNAVAILABLE)

    async def _beat(self, client: RemoteClient) -> None:
        """Send heartbeats, which keep the session alive and detect a hanging remote."""
        if not client.session.id:
            return
        while True:
            await trio.sleep(min(client.session.window / BEATS, self._link.remote.connection_check_interval))
            await _unless_overloaded(client.beat, None)

    async def _poll(self, client: RemoteClient, starting: bool) -> None:
        """Query the resources periodically, because there is no event, and soon after a doubtful answer."""
        while True:
            with trio.move_on_after(SOON if starting else self._link.remote.connection_check_interval):
                await client.doubt.wait()
                await trio.sleep(SOON)
            client.doubt = trio.Event()
            starting = await _unless_overloaded(lambda: self._learn(client), starting)


def _once(dial: Callable[[], Awaitable[trio.abc.Stream]]) -> Callable[[], Awaitable[trio.abc.Stream]]:
    """Return a function that connects only once, because facts learned over a connection end with it."""
    dials = iter([dial])

    async def connect() -> trio.abc.Stream:
        for each in dials:
            return await each()
        raise OSError(LOST)

    return connect


async def _opened_before(stream: trio.abc.Stream) -> trio.abc.Stream:
    await trio.lowlevel.checkpoint()
    return stream


def _address(stream: trio.abc.Stream) -> str:
    """Return the address of the other end."""
    address = Peer.of(stream).address
    return DialTarget(str(address[0]), int(address[1])).authority if isinstance(address, tuple) else "localhost:443"


async def _close(streams: list[trio.abc.Stream]) -> None:
    for stream in streams:
        await trio.aclose_forcefully(stream)


async def _unless_refused(question: Callable[[], Awaitable[Introduction | None]]) -> Introduction | None:
    """Return the introduction; None if the remote does not give one. MachineError if it does not answer."""
    try:
        return await answered(question, ANSWER_LIMIT)
    except MachineError as error:
        if error.kind is ErrorKind.UNAVAILABLE:
            raise
        return None


async def _unless_overloaded(question: Callable[[], Awaitable[T]], otherwise: T) -> T:
    """Return the result of `question`, or `otherwise` if the remote is overloaded: that is an answer, too.

    Raises MachineError (UNAVAILABLE) if there is no answer within ANSWER_LIMIT.
    """
    try:
        return await answered(question, ANSWER_LIMIT)
    except MachineError as error:
        if error.kind is not ErrorKind.EXHAUSTED:
            raise
        return otherwise
