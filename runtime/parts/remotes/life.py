"""The connection to one remote: connecting, watching, reconnecting."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

import trio
from grpclib.exceptions import GRPCError

from nursery_graph import Restart, current_node
from nursery_graph.restart import back_off
from rpc.client.channel import Channel
from rpc.limits import Limits
from runtime.parts.remotes.client import RemoteClient, answered
from runtime.parts.remotes.dial import Dial, dial
from runtime.parts.remotes.link import RemoteLink
from schema.errors import ErrorKind, MachineError
from support.gather import unwrap

ANSWER_LIMIT: Final = 5.0  # seconds for one call, including connecting; then the remote counts as lost
FIRST_ATTEMPT_LIMIT: Final = 2.0  # maximum seconds that the machine's start waits for the resources of the remote
MAX_DELAY: Final = 10.0  # seconds between attempts to connect, unless reconnect_interval is longer
LOST: Final = "the connection was lost"
BEATS: Final = 5  # heartbeats within a session's window, as in official clients
SOON: Final = 1.0  # seconds until a remote is queried again that is starting or gave a doubtful answer


T = TypeVar("T")


class RemoteLife:
    """Keeps `link` connected until cancelled."""

    def __init__(self, link: RemoteLink, *, dial: Dial = dial, jitter: Callable[[], float] = random.random) -> None:
        self._link = link
        self._dial = dial
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
            if await self._connect_once():
                failures = 0
            self._tried.set()
            failures += 1
            await trio.sleep(back_off(policy, failures, self._jitter()))

    async def _connect_once(self) -> bool:
        """Connect once, and serve the connection until it ends. Return whether it was established."""
        link = self._link
        limits = Limits(handshake_timeout=ANSWER_LIMIT)
        async with Channel(
            link.route.address, credentials=link.credentials, limits=limits, connect=self._connector()
        ) as channel:
            try:
                await self._use(channel)
            except MachineError as error:
                # Before the channel closes, so that concurrent calls fail with the reason.
                was_connected = link.closed(error.message)
                current_node().unhealthy(link.failure)
                return was_connected
            finally:
                link.client = None
        return True

    async def _use(self, channel: Channel) -> None:
        """Start the session, then watch the connection. Raises the MachineError that ends it."""
        link = self._link
        client = RemoteClient(link.remote.name, channel, link.session)
        starting = await answered(lambda: self._start_session(client), ANSWER_LIMIT)
        link.opened(client)
        current_node().healthy()
        self._tried.set()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, channel)
                nursery.start_soon(self._beat, client)
                nursery.start_soon(self._poll, client, starting)
        except BaseExceptionGroup as group:
            raise unwrap(group) from None

    def _connector(self) -> Callable[[], Awaitable[trio.abc.Stream]]:
        """Return a function that connects only once, because facts learned over a connection end with it."""
        routes = iter([self._link.route])

        async def connect() -> trio.abc.Stream:
            for route in routes:
                return await self._dial(route)
            raise OSError(LOST)

        return connect

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
