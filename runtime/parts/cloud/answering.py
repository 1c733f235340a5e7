"""Answers offers of WebRTC connections, which clients make through the cloud, and serves their calls.

A few calls of `Answer` wait at the cloud. An offer opens the engine, if it is the first one. Once a client is
connected, neither the cloud nor the connection to it is needed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Final

import structlog
import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.api import messages
from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.client.channel import Channel as CloudChannel
from rpc.datachannel.server import serve_channel
from rpc.network.tls import TlsError
from rpc.peers.dial import DATA, HOST, NEGOTIATION, RECOVERY, SERVICE, until_lost
from rpc.peers.engines import open_engine
from rpc.peers.port import Candidate, Channel, Description, Engine, PeerConnection, PeerOptions, PeerState
from rpc.peers.signals import (
    candidate_fields,
    candidate_of,
    decode_description,
    encode_description,
    servers_of,
    with_candidates,
)
from rpc.status import of_exception
from schema.errors import ErrorKind, MachineError
from support.gather import ungrouped
from uplink.dial import CloudAddress, shared

ANSWER: Final = f"{SERVICE}Answer"
WAITING: Final = 2  # calls that wait for offers; while one gets an offer, the other still waits
MAX_ATTEMPTS: Final = 16  # clients that are being connected
MAX_CALLER_ATTEMPTS: Final = 8  # of these, clients with the same key: they may never connect
MAX_CONNECTIONS: Final = 64  # clients that are connected or being connected; each costs about 300 KiB
SILENCE: Final = 40.0  # seconds without a heartbeat after which a call is made again; the cloud sends one each 15 s
CONNECT_LIMIT: Final = 20.0  # seconds from the offer to the open channel
LEAVING: Final = 1.0  # seconds for the channel to open, if the caller has ended its call
KEY_LIMIT: Final = 5.0  # seconds for the caller's key to arrive, if it is newer than this machine's configuration
END_LIMIT: Final = 5.0  # seconds for the cloud to take the last answer
FIRST_DELAY: Final = 1.0  # seconds before the second attempt to reach the cloud; doubled each time, with jitter
MAX_DELAY: Final = 30.0

_log = structlog.get_logger("cloud.webrtc")

Media = Callable[[PeerConnection, Channel], AbstractAsyncContextManager[Any]]
"""Opens what `Peer.media` refers to, for a connection and its channel for renegotiation."""

RunBlocking = Callable[[Callable[[], ModuleType]], Awaitable[ModuleType]]


@dataclass(frozen=True, slots=True)
class _Client:
    """Connection of a client and its channels."""

    peer: PeerConnection
    data: Channel
    negotiation: Channel


class Answering:
    """The connections of one machine; `run` answers offers until it is cancelled, which ends the connections.

    `core` serves the calls, and `media` the videos. `run_blocking` calls a function in a thread, see `open_engine`.
    """

    def __init__(self, address: CloudAddress, core: ServerCore, run_blocking: RunBlocking, media: Media) -> None:
        self._address = address
        self._core = core
        self._media = media
        self._run_blocking = run_blocking
        self._keys: frozenset[tuple[str, str]] = frozenset()
        self._keys_changed = trio.Event()
        self._opening = trio.Lock()
        self._engine: Engine | None = None
        self._connections = 0
        self._connecting: Counter[tuple[str, str]] = Counter()
        self._attempts = trio.Semaphore(MAX_ATTEMPTS)
        self._nursery: trio.Nursery | None = None

    def configure(self, keys: Iterable[tuple[str, str]]) -> None:
        """Set the types and ids of the keys that clients may use. Connections of other keys are closed."""
        accepted = frozenset(keys)
        if accepted != self._keys:
            self._keys = accepted
            changed, self._keys_changed = self._keys_changed, trio.Event()
            changed.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Wait for offers at the cloud and answer them, and wait again after each failure to reach it."""
        delay = FIRST_DELAY
        self._engine = None
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            while True:
                begun = trio.current_time()
                try:
                    with ungrouped(MachineError, TlsError):
                        await self._answer_offers()
                except (MachineError, TlsError) as error:
                    _log.debug("not waiting for offers", reason=str(error))
                if trio.current_time() - begun > MAX_DELAY:
                    delay = FIRST_DELAY
                if await self._address.contact.pause(delay * random.uniform(0.5, 1.0)):
                    delay = FIRST_DELAY
                delay = min(2 * delay, MAX_DELAY)

    async def _answer_offers(self) -> None:
        """Answer offers until the cloud fails, which raises MachineError. Attempts then end, connections do not.

        Another connection that had to be made again is such a failure: after a change of networks, the one that is used
        here has failed too, which would only be noticed after SILENCE.
        """
        failed: list[MachineError] = []
        async with shared(self._address) as address, address.channel() as channel, trio.open_nursery() as attempts:

            async def wait() -> None:
                while True:
                    await self._attempts.acquire()
                    error: MachineError | None = await attempts.start(self._attempt, channel)
                    if error is not None:
                        failed.append(error)
                        attempts.cancel_scope.cancel()

            async def renew() -> None:
                await self._address.contact.wait_reached()
                failed.append(MachineError("the cloud was reached by a new connection", kind=ErrorKind.UNAVAILABLE))
                attempts.cancel_scope.cancel()

            for _ in range(WAITING):
                attempts.start_soon(wait)
            attempts.start_soon(renew)
        if failed:
            raise failed[0]

    async def _attempt(self, channel: CloudChannel, *, task_status: trio.TaskStatus[MachineError | None]) -> None:
        """Wait for one offer and answer it. `task_status` gets None once there is an offer, else the error."""
        offered, reason = False, "the cloud has ended the call"
        requests, replies = messages.signaling().AnswerResponse, messages.signaling().AnswerRequest
        metadata = {HOST: self._address.part, "heartbeats-allowed": "true"}
        try:
            async with channel.request(
                ANSWER, Cardinality.STREAM_STREAM, requests, replies, metadata=metadata
            ) as stream:
                await stream.send_request()
                offer = await _offer(stream)
                if offer is not None:
                    offered = True
                    task_status.started(None)
                    with ungrouped(GRPCError, StreamTerminatedError, OSError):
                        await self._respond(stream, offer)
        except (GRPCError, StreamTerminatedError, OSError, trio.TooSlowError) as error:
            reason = getattr(error, "message", "") or str(error) or repr(error)
            if offered:
                _log.info("a client's connection attempt was interrupted", reason=reason)
        finally:
            self._attempts.release()
        if not offered:
            task_status.started(MachineError(reason, kind=ErrorKind.UNAVAILABLE))

    async def _respond(self, stream: Any, offer: Any) -> None:
        """Answer an offer, and exchange candidates with the caller until its channel is open or the time is over."""
        answer = partial(messages.signaling().AnswerResponse, uuid=offer.uuid)
        caller = Identity(offer.init.caller_auth_entity, offer.init.caller_auth_metadata.get("type", ""))
        try:
            client, description = await self._accept(offer.init, caller)
        except MachineError as error:
            _log.info("an offer was refused", caller=caller.entity, reason=str(error))
            outcome = of_exception(error)
            status = {"code": outcome.status.value, "message": outcome.message}
            await _end(stream, answer(error={"status": status}))
            return
        assert self._nursery is not None
        self._nursery.start_soon(self._serve, client, caller)
        trickle = not offer.init.optional_config.disable_trickle
        if not trickle:
            description = with_candidates(description, await _all_candidates(client.peer))
        await stream.send_message(answer(init={"sdp": encode_description(description)}))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_take_candidates, stream, client)
            if trickle:
                nursery.start_soon(_send_candidates, stream, client.peer, answer)
            with trio.move_on_after(CONNECT_LIMIT):
                await _opened(client.data)
            nursery.cancel_scope.cancel()
        await _end(stream, answer(done={}))

    async def _accept(self, init: Any, caller: Identity) -> tuple[_Client, Description]:
        """Return a connection for an offer, and the answer. The connection counts from here on."""
        if not await self._knows(caller):
            raise MachineError(
                f"this machine does not accept the key {caller.entity[:40]!r}",
                kind=ErrorKind.PERMISSION,
                remedy="try again in a few seconds, when the machine has received the key from the cloud",
            )
        if self._connections >= MAX_CONNECTIONS:
            raise MachineError(
                f"{MAX_CONNECTIONS} clients are connected by WebRTC, which is the limit",
                kind=ErrorKind.EXHAUSTED,
                remedy="close some of them",
            )
        if self._connecting[caller.kind, caller.entity] >= MAX_CALLER_ATTEMPTS:
            raise MachineError(
                f"{MAX_CALLER_ATTEMPTS} clients with the same key are being connected, which is the limit",
                kind=ErrorKind.EXHAUSTED,
                remedy=f"try again; an attempt ends after {CONNECT_LIMIT:g} s",
            )
        self._connections += 1
        self._connecting[caller.kind, caller.entity] += 1
        peer: PeerConnection | None = None
        try:
            engine = await self._opened_engine()
            peer = engine.connect(PeerOptions(servers_of(init.optional_config)))
            client = _Client(peer, peer.channel(*DATA), peer.channel(*NEGOTIATION))
            await peer.accept(decode_description(init.sdp))
            return client, await peer.answer()
        except BaseException:
            self._connections -= 1
            self._end_attempt(caller)
            if peer is not None:
                peer.close()
            raise

    async def _knows(self, caller: Identity) -> bool:
        """Return whether a caller's key is accepted; wait a little for one that is new."""
        with trio.move_on_after(KEY_LIMIT):
            while (caller.kind, caller.entity) not in self._keys:
                await self._keys_changed.wait()
            return True
        return False

    async def _opened_engine(self) -> Engine:
        async with self._opening:
            if self._engine is None:
                assert self._nursery is not None
                self._engine = await self._nursery.start(self._run_engine)
            return self._engine

    async def _run_engine(self, *, task_status: trio.TaskStatus[Engine]) -> None:
        async with open_engine(self._run_blocking) as engine:
            _log.debug("the WebRTC engine runs", engine=engine.name)
            task_status.started(engine)
            await trio.sleep_forever()

    async def _serve(self, client: _Client, caller: Identity) -> None:
        """Serve the calls of a client until its connection ends or its key is deleted, and close the connection."""
        log, peer = _log.bind(caller=caller.entity), client.peer
        try:
            opened = False
            try:
                with trio.move_on_after(CONNECT_LIMIT):
                    opened = await _opened(client.data)
            finally:
                self._end_attempt(caller)
            if not opened:  # the state of the peer may become CONNECTED after the channel is open
                log.info("a client could not be reached", state=peer.state.value)
                return
            report = await peer.report()
            address = report.remote_address or ""
            log.info("a client has connected", local=report.local, remote=report.remote, address=address)
            with ungrouped(MachineError):
                async with self._media(peer, client.negotiation) as media, trio.open_nursery() as nursery:
                    nursery.start_soon(_end_with_connection, peer, nursery.cancel_scope)
                    nursery.start_soon(self._end_with_key, caller, nursery.cancel_scope)
                    await serve_channel(client.data, self._core, peer=Peer((address, 0), media=media), identity=caller)
                    nursery.cancel_scope.cancel()
            log.info("a client has disconnected", address=address)
        except MachineError as error:
            log.info("a connection has failed", reason=str(error))
        finally:
            peer.close()
            self._connections -= 1

    def _end_attempt(self, caller: Identity) -> None:
        self._connecting[caller.kind, caller.entity] -= 1
        if not self._connecting[caller.kind, caller.entity]:
            del self._connecting[caller.kind, caller.entity]

    async def _end_with_key(self, caller: Identity, scope: trio.CancelScope) -> None:
        while (caller.kind, caller.entity) in self._keys:
            await self._keys_changed.wait()
        scope.cancel()


async def _offer(stream: Any) -> Any:
    """Return the next offer; None if the cloud ends the call. trio.TooSlowError if not even heartbeats arrive."""
    while True:
        with trio.fail_after(SILENCE):
            message = await stream.recv_message()
        if message is None or message.WhichOneof("stage") == "init":
            return message


async def _end(stream: Any, last: Any) -> None:
    """Send the last answer and wait until the cloud ends the call; leaving it earlier could discard the answer."""
    await stream.send_message(last, end=True)
    with trio.move_on_after(END_LIMIT):
        while await stream.recv_message() is not None:
            pass


async def _opened(channel: Channel) -> bool:
    """Wait until a channel is open, and return True; False if it has ended before."""
    try:
        await channel.wait_open()
    except trio.BrokenResourceError:
        return False
    return True


async def _all_candidates(peer: PeerConnection) -> list[Candidate]:
    """Return all local candidates; those of the first CONNECT_LIMIT / 4 seconds, if a server does not answer."""
    candidates = []
    with trio.move_on_after(CONNECT_LIMIT / 4):
        while (candidate := await peer.next_candidate()) is not None:
            candidates.append(candidate)
    return candidates


async def _send_candidates(stream: Any, peer: PeerConnection, answer: Callable[..., Any]) -> None:
    while (candidate := await peer.next_candidate()) is not None:
        await stream.send_message(answer(update={"candidate": candidate_fields(candidate)}))


async def _take_candidates(stream: Any, client: _Client) -> None:
    """Add the caller's candidates to a connection. An error of the caller closes it.

    A caller ends its call as soon as it is connected. The cloud then reports that it has left, perhaps before the
    channel is open here, which is therefore awaited for LEAVING seconds.
    """
    while (message := await stream.recv_message()) is not None:
        stage = message.WhichOneof("stage")
        if stage == "update":
            try:
                await client.peer.add_candidate(candidate_of(message.update.candidate))
            except MachineError as error:
                _log.info("a candidate was ignored", reason=str(error))
        elif stage == "error":
            status = message.error.status
            if status.code == Status.ABORTED.value:
                with trio.move_on_after(LEAVING):
                    await _opened(client.data)  # then this task is cancelled
                if client.peer.state is PeerState.CONNECTED:
                    continue
            _log.info("a client has given up", reason=status.message)
            client.peer.close()


async def _end_with_connection(peer: PeerConnection, scope: trio.CancelScope) -> None:
    await until_lost(peer, RECOVERY)
    scope.cancel()
