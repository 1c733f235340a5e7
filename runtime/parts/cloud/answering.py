"""Waits at the cloud for offers of WebRTC connections, which `rpc.datachannel.clients` answers.

One call of `Answer` waits at the cloud. The next begins as soon as it has got an offer; the cloud keeps offers that are
made in between. Once a client is connected, neither the cloud nor the connection to it is needed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Final

import structlog
import trio
from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc import Identity, ServerCore
from rpc.api import messages
from rpc.client import Channel as CloudChannel
from rpc.datachannel import Responder
from rpc.network import TlsError
from rpc.peers import HOST, SERVICE
from schema import ErrorKind, MachineError
from support import ChangeSignal, DoublingDelay, ungrouped
from uplink import CloudAddress, shared_channel

ANSWER: Final = f"{SERVICE}Answer"
MAX_ATTEMPTS: Final = 16  # clients that are being connected
SILENCE: Final = 40.0  # seconds without a heartbeat after which a call is made again; the cloud sends one each 15 s
KEY_LIMIT: Final = 5.0  # seconds for the caller's key to arrive, if it is newer than this machine's configuration
FIRST_DELAY: Final = 1.0  # seconds before the second attempt to reach the cloud; doubled each time, with jitter
MAX_DELAY: Final = 30.0

_log = structlog.get_logger("cloud.webrtc")


class Answering:
    """The door for clients that come through the cloud; `run` takes their offers until it is cancelled.

    `core` serves the calls, and `clients` has the connections, which live longer than `run`.
    """

    def __init__(self, address: CloudAddress, core: ServerCore, clients: Responder) -> None:
        self.core = core
        self._address = address
        self._clients = clients
        self._keys: frozenset[tuple[str, str]] = frozenset()
        self._keys_changed = ChangeSignal()
        self._attempts = trio.Semaphore(MAX_ATTEMPTS)

    def configure(self, keys: Iterable[tuple[str, str]]) -> None:
        """Set the types and ids of the keys that clients may use. Connections of other keys are closed."""
        accepted = frozenset(keys)
        if accepted != self._keys:
            self._keys = accepted
            self._keys_changed.announce()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Wait for offers at the cloud and answer them, and wait again after each failure to reach it."""
        delays = DoublingDelay(FIRST_DELAY, MAX_DELAY)
        task_status.started()
        while True:
            begun = trio.current_time()
            try:
                with ungrouped(MachineError, TlsError):
                    await self._answer_offers()
            except (MachineError, TlsError) as error:
                _log.debug("not waiting for offers", reason=str(error))
            if trio.current_time() - begun > MAX_DELAY:
                delays.reset()
            if await self._address.contact.pause(delays.next() * random.uniform(0.5, 1.0)):
                delays.reset()

    async def admits(self, caller: Identity | None) -> bool:
        """Return whether a caller's key is accepted; wait a little for one that is new."""
        with trio.move_on_after(KEY_LIMIT):
            while not self._knows(caller):
                await self._keys_changed.next.wait()
            return True
        return False

    async def until_revoked(self, caller: Identity | None) -> None:
        """Wait until the key of a caller is not accepted any more."""
        while self._knows(caller):
            await self._keys_changed.next.wait()

    def _knows(self, caller: Identity | None) -> bool:
        return caller is not None and (caller.kind, caller.entity) in self._keys

    async def _answer_offers(self) -> None:
        """Answer offers until the cloud fails, which raises MachineError. Attempts then end, connections do not.

        Another connection that had to be made again is such a failure: after a change of networks, the one that is used
        here has failed too, which would only be noticed after SILENCE.
        """
        failed: list[MachineError] = []
        async with (
            shared_channel(self._address) as address,
            address.channel() as channel,
            trio.open_nursery() as attempts,
        ):

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
                        await self._clients.respond(stream, offer, _caller(offer), self)
        except (GRPCError, StreamTerminatedError, OSError, trio.TooSlowError) as error:
            reason = getattr(error, "message", "") or str(error) or repr(error)
            if offered:
                _log.info("a client's connection attempt was interrupted", reason=reason)
        finally:
            self._attempts.release()
        if not offered:
            task_status.started(MachineError(reason, kind=ErrorKind.UNAVAILABLE))


def _caller(offer: Any) -> Identity:
    """Return the caller of an offer, whom the cloud has authenticated."""
    return Identity(offer.init.caller_auth_entity, offer.init.caller_auth_metadata.get("type", ""))


async def _offer(stream: Any) -> Any:
    """Return the next offer; None if the cloud ends the call. trio.TooSlowError if not even heartbeats arrive."""
    while True:
        with trio.fail_after(SILENCE):
            message = await stream.recv_message()
        if message is None or message.WhichOneof("stage") == "init":
            return message
