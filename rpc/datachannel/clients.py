"""Clients of a machine that connect by WebRTC: answers their offers, and serves their calls until they leave.

Signalling, through the cloud or at the machine's own port, passes each offer to `Clients.respond`. The first one opens
the engine. A client that is connected no longer needs signalling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import structlog
import trio
from grpclib.const import Status

from rpc.api import messages
from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.datachannel.server import serve_channel
from rpc.peers.dial import DATA, NEGOTIATION, RECOVERY, until_lost
from rpc.peers.engines import open_engine
from rpc.peers.port import Description, Engine, IceCandidate, PeerChannel, PeerConnection, PeerOptions, PeerState
from rpc.peers.signals import (
    candidate_fields,
    candidate_of,
    decode_description,
    encode_description,
    servers_of,
    with_candidates,
)
from rpc.status import of_exception
from schema import ErrorKind, MachineError
from support import RunBlocking, ungrouped

MAX_CALLER_ATTEMPTS: Final = 8  # clients with the same key that are being connected: they may never connect
MAX_CONNECTIONS: Final = 64  # clients that are connected or being connected; each costs about 300 KiB
CONNECT_LIMIT: Final = 20.0  # seconds from the offer to the open channel
LEAVING: Final = 1.0  # seconds for the channel to open, if the caller has ended its call
END_LIMIT: Final = 5.0  # seconds for signalling to take the last answer

_log = structlog.get_logger("cloud.webrtc")

Media = Callable[[PeerConnection, PeerChannel], AbstractAsyncContextManager[Any]]
"""Opens what `Peer.media` refers to, for a connection and its channel for renegotiation."""


class Door(Protocol):
    """One way to the clients: which callers it admits, and what serves their calls."""

    @property
    def core(self) -> ServerCore:
        """Serves the calls of its clients."""
        ...

    async def admits(self, caller: Identity | None) -> bool:
        """Return whether a caller may connect. May wait a little for a key that is new."""
        ...

    async def until_revoked(self, caller: Identity | None) -> None:
        """Wait until a connected caller may not call any more."""
        ...


class Responder(Protocol):
    """Answers offers."""

    async def respond(self, stream: Any, offer: Any, caller: Identity | None, door: Door) -> None:
        """Answer an offer, and exchange candidates with the caller until its channel is open or the time is over."""
        ...


@dataclass(frozen=True, slots=True)
class _Client:
    """Connection of a client and its channels."""

    peer: PeerConnection
    data: PeerChannel
    negotiation: PeerChannel
    caller: Identity | None
    door: Door

    @property
    def key(self) -> tuple[str, str]:
        return _key(self.caller)


class Clients:
    """The connections of one machine, which live in `run`.

    `media` has the videos of a connection. `run_blocking` calls a function in a thread, see `open_engine`.
    """

    def __init__(self, run_blocking: RunBlocking, media: Media) -> None:
        self._media = media
        self._run_blocking = run_blocking
        self._opening = trio.Lock()
        self._engine: Engine | None = None
        self._connections = 0
        self._connecting: Counter[tuple[str, str]] = Counter()
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the connections until cancelled."""
        self._engine = None
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None

    async def respond(self, stream: Any, offer: Any, caller: Identity | None, door: Door) -> None:
        """Answer an offer, and exchange candidates with the caller until its channel is open or the time is over.

        `stream` takes messages of AnswerResponse and yields those of AnswerRequest that follow `offer`.
        """
        answer = partial(messages.signaling().AnswerResponse, uuid=offer.uuid)
        try:
            client, description = await self._accept(offer.init, caller, door)
        except MachineError as error:
            _log.info("an offer was refused", caller=_name(caller), reason=str(error))
            outcome = of_exception(error)
            status = {"code": outcome.status.value, "message": outcome.message}
            await _end(stream, answer(error={"status": status}))
            return
        assert self._nursery is not None
        self._nursery.start_soon(self._serve, client)
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

    async def _accept(self, init: Any, caller: Identity | None, door: Door) -> tuple[_Client, Description]:
        """Return a connection for an offer, and the answer. The connection counts from here on."""
        if not await door.admits(caller):
            raise MachineError(
                f"this machine does not accept the key {_name(caller)!r}",
                kind=ErrorKind.PERMISSION,
                remedy="try again in a few seconds, when the machine has received the key from the cloud",
            )
        if self._nursery is None:
            raise MachineError("the machine stops or starts", kind=ErrorKind.UNAVAILABLE, remedy="try again")
        if self._connections >= MAX_CONNECTIONS:
            raise MachineError(
                f"{MAX_CONNECTIONS} clients are connected by WebRTC, which is the limit",
                kind=ErrorKind.EXHAUSTED,
                remedy="close some of them",
            )
        if self._connecting[_key(caller)] >= MAX_CALLER_ATTEMPTS:
            raise MachineError(
                f"{MAX_CALLER_ATTEMPTS} clients with the same key are being connected, which is the limit",
                kind=ErrorKind.EXHAUSTED,
                remedy=f"try again; an attempt ends after {CONNECT_LIMIT:g} s",
            )
        self._connections += 1
        self._connecting[_key(caller)] += 1
        peer: PeerConnection | None = None
        try:
            engine = await self._opened_engine()
            peer = engine.connect(PeerOptions(servers_of(init.optional_config)))
            client = _Client(peer, peer.channel(*DATA), peer.channel(*NEGOTIATION), caller, door)
            await peer.accept(decode_description(init.sdp))
            return client, await peer.answer()
        except BaseException:
            self._connections -= 1
            self._end_attempt(_key(caller))
            if peer is not None:
                peer.close()
            raise

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

    async def _serve(self, client: _Client) -> None:
        """Serve the calls of a client until its connection ends or its key is deleted, and close the connection."""
        log, peer, caller = _log.bind(caller=_name(client.caller)), client.peer, client.caller
        try:
            opened = False
            try:
                with trio.move_on_after(CONNECT_LIMIT):
                    opened = await _opened(client.data)
            finally:
                self._end_attempt(client.key)
            if not opened:  # the state of the peer may become CONNECTED after the channel is open
                log.info("a client could not be reached", state=peer.state.value)
                return
            report = await peer.report()
            address = report.remote_address or ""
            log.info("a client has connected", local=report.local, remote=report.remote, address=address)
            with ungrouped(MachineError):
                async with self._media(peer, client.negotiation) as media, trio.open_nursery() as nursery:
                    nursery.start_soon(_end_with_connection, peer, nursery.cancel_scope)
                    nursery.start_soon(_end_with_key, client, nursery.cancel_scope)
                    core, end = client.door.core, Peer((address, 0), media=media)
                    await serve_channel(client.data, core, peer=end, identity=caller)
                    nursery.cancel_scope.cancel()
            log.info("a client has disconnected", address=address)
        except MachineError as error:
            log.info("a connection has failed", reason=str(error))
        finally:
            peer.close()
            self._connections -= 1

    def _end_attempt(self, key: tuple[str, str]) -> None:
        self._connecting[key] -= 1
        if not self._connecting[key]:
            del self._connecting[key]


def _key(caller: Identity | None) -> tuple[str, str]:
    """Return what tells the callers apart; those without keys are one caller."""
    return ("", "") if caller is None else (caller.kind, caller.entity)


def _name(caller: Identity | None) -> str:
    return "" if caller is None else caller.entity[:40]


async def _end(stream: Any, last: Any) -> None:
    """Send the last answer and wait until the other end takes it; leaving it earlier could discard the answer."""
    await stream.send_message(last, end=True)
    with trio.move_on_after(END_LIMIT):
        while await stream.recv_message() is not None:
            pass


async def _opened(channel: PeerChannel) -> bool:
    """Wait until a channel is open, and return True; False if it has ended before."""
    try:
        await channel.wait_open()
    except trio.BrokenResourceError:
        return False
    return True


async def _all_candidates(peer: PeerConnection) -> list[IceCandidate]:
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

    A caller ends its call as soon as it is connected. Signalling then reports that it has left, perhaps before the
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


async def _end_with_key(client: _Client, scope: trio.CancelScope) -> None:
    await client.door.until_revoked(client.caller)
    scope.cancel()
