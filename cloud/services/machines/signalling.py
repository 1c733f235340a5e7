"""proto.rpc.webrtc.v1.SignalingService: establishes WebRTC connections between clients and machines.

The metadata `rpc-host` names the machine: see cloud.domain.machines.hosts. After an offer, the two ends exchange their
candidates, which may take several seconds; then they are connected without this cloud.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final

import structlog
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from msgspec import Struct
from msgspec.structs import asdict
from multidict import MultiDict

from cloud.domain.machines import machines, signalling
from cloud.domain.machines.online import Presence, presence
from cloud.domain.machines.signalling import End, Offer, PeerSignal
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.calling import check_answering, require_caller
from cloud.domain.permissions.rules import OF_HOST, AccessRule, allow, signed_in
from cloud.services.common.base import Service, guarded
from cloud.store.events import Listener
from cloud.store.sql import Sql
from cloud.values.limits import SDP
from cloud.work.openings import ANSWERERS
from schema import ErrorKind, MachineError
from support import SideTask, side_task

HOST: Final = "rpc-host"
HEARTBEATS: Final = "heartbeats-allowed"
HEARTBEAT: Final = 15.0  # seconds between heartbeats to a machine that waits for offers; reference value
CLEANUP: Final = 2.0  # seconds for recording that a call has ended
MAX_ERROR: Final = 500  # characters of an error that one end reports to the other

_log = structlog.get_logger("cloud.signalling")


class Candidate(Struct, frozen=True):
    """ICE candidate."""

    candidate: str = ""
    sdp_mid: str | None = None
    sdpm_line_index: int | None = None
    username_fragment: str | None = None


class Problem(Struct, frozen=True):
    """Error of one end: a status code of gRPC, and a text."""

    code: int = 0
    message: str = ""


class ReportedCandidate(Struct, frozen=True):
    """Type of a candidate in use, and the address of the relay, if it is one."""

    type: int = 0
    relay_address: str = ""


@guarded
class SignallingService(Service):
    """Calls of clients, for machines that they operate, and of machines, for themselves."""

    _called = ""  # the part of a client's call

    @allow(OF_HOST)
    async def optional_web_rtc_config(self) -> Mapping[str, Any]:
        """Return the STUN and TURN servers for a connection to the machine.

        INVALID "host not preconfigured" if this cloud has no such machine, or one without WebRTC: official clients then
        call it at the address that they have dialled. UNAVAILABLE if it is offline.
        """
        await self._callable_part()
        return self._config()

    @allow(OF_HOST)
    async def call(self, sdp: str, disable_trickle: bool = False) -> AsyncGenerator[Mapping[str, Any], None]:
        """Offer a connection to the machine; yield its answer and its candidates.

        Ends when the machine has no more candidates. A caller that leaves earlier ends the attempt at the machine.
        Errors are those of `optional_web_rtc_config`; EXHAUSTED if there are too many offers, UNAVAILABLE if the
        machine does not answer within `signalling.TIME`, or if the cloud stops.
        """
        part = await self._callable_part()
        offer = await self.write(
            lambda sql: signalling.create(sql, part.id, self.author, sdp, self.now(), trickle=not disable_trickle)
        )
        answered = ended = False
        try:
            async with aclosing(self._signals(offer, End.CALLER, SideTask())) as signals:
                async for signal in signals:
                    content = signal.content
                    ended = "error" in content or "done" in content
                    if "error" in content:
                        raise GRPCError(_status(content["error"]), content["error"]["message"])
                    if ended:
                        return
                    answered = answered or "init" in content
                    yield {"uuid": offer.id, **content}
        finally:
            with trio.move_on_after(CLEANUP, shield=True):
                await self.cloud.store.write(lambda sql: signalling.end(sql, offer, abandoned=not ended))
        if self.cloud.openings.closing:
            raise MachineError("the cloud stops", kind=ErrorKind.UNAVAILABLE, remedy="try again")
        if not answered:
            raise MachineError(
                f"{part.name} did not answer within {signalling.TIME.total_seconds():g} s",
                kind=ErrorKind.UNAVAILABLE,
                remedy="try again; the machine's log says what it does",
            )

    @allow(signed_in("the caller's own offers"))
    async def call_update(
        self, uuid: str, candidate: Candidate | None = None, done: bool = False, error: Problem | None = None
    ) -> None:
        """Send a candidate of the caller to the machine, or that there are no more, or that the caller has failed.

        Has no effect after the call has ended. NOT_FOUND for another caller, and `signalling.TIME` after the offer.
        """
        content = _content(candidate, done=done, error=error)

        def work(sql: Sql) -> None:
            offer, ended = signalling.offer_of(sql, uuid, self.now())
            if offer.caller != self.author:
                raise signalling.unknown(uuid)
            self._check_caller(sql, offer.part)
            if not ended:
                signalling.send(sql, offer, End.MACHINE, content)

        await self.write(work)

    @allow(
        AccessRule(
            Role.MACHINE,
            note="the machine itself, named by `rpc-host`; checked by the method; not with a secret of its location",
        )
    )
    async def answer(self, answers: AsyncIterator[Any]) -> AsyncGenerator[Mapping[str, Any], None]:
        """Wait for an offer to the calling machine; yield it and the caller's candidates, and forward the `answers`.

        Ends after the machine's last answer, or `signalling.TIME` after the offer; the machine then calls again.
        EXHAUSTED for too many calls of a machine at the same time.
        """
        part = (await self._part(self._check_machine)).id  # not the record, which would be kept while this waits
        check_answering(self.author)
        heartbeats = self._metadata(HEARTBEATS) == ["true"]
        with (
            self.cloud.openings.hold(f"answering for {part}", ANSWERERS),
            self.cloud.events.listening(signalling.OFFERED, part) as news,
        ):
            while (offer := await self._taken(part)) is None:
                if self.cloud.openings.closing:
                    return
                while not await _arrived(news, HEARTBEAT):
                    if heartbeats:
                        yield {"heartbeat": {}}
        yield {"uuid": offer.id, "init": self._init(offer)}
        finished = trio.Event()
        async with (
            side_task(partial(self._forward, offer, answers, finished)) as forwarding,
            aclosing(self._signals(offer, End.MACHINE, forwarding, finished)) as signals,
        ):
            async for signal in signals:
                yield {"uuid": offer.id, **signal.content}

    @allow(OF_HOST)
    async def report_connection_metadata(
        self,
        local: ReportedCandidate | None = None,
        remote: ReportedCandidate | None = None,
        reached_stage: int = 0,
        duration_ms: int = 0,
        signaling_path: int = 0,
        failure_code: int = 0,
    ) -> None:
        """Log how a client has connected, or failed to connect, to the machine."""
        part = await self._part(self._check_caller)
        _log.info(
            "a client has reported its connection",
            part=part.id,
            caller=self.author.name,
            local=local.type if local is not None else 0,
            remote=remote.type if remote is not None else 0,
            stage=reached_stage,
            milliseconds=duration_ms,
            path=signaling_path,
            failure=failure_code,
        )

    # ---- the machine

    def _metadata(self, key: str) -> list[str]:
        metadata: Any = self.request.metadata if self.request is not None else MultiDict()
        return list(metadata.getall(key, []))

    def again(self, sql: Sql) -> None:
        """Repeat the permission checks of a long-running call; MachineError if the caller may no longer make it."""
        super().again(sql)
        if self._called:
            require_caller(sql, self.author, self._called)

    def _check_caller(self, sql: Sql, subject: str) -> None:
        self._place = require_caller(sql, self.author, subject)
        self._called = subject

    def _check_machine(self, sql: Sql, subject: str) -> None:
        self.require(sql, Role.MACHINE, ObjectKind.PART, subject)

    async def _part(self, check: Callable[[Sql, str], None]) -> machines.PartRecord:
        """Return the part that the metadata names, if `check` allows it to the caller."""
        hosts = self._metadata(HOST)
        subject = self.cloud.hosts.part_of(hosts[0]) if hosts else None
        if subject is None:
            raise _unknown_host(hosts)

        def work(sql: Sql) -> machines.PartRecord:
            check(sql, subject)
            return machines.part(sql, subject)

        try:
            return await self.read(work)
        except MachineError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                raise _unknown_host(hosts) from None
            raise

    async def _callable_part(self) -> machines.PartRecord:
        """Return the part that the metadata names, which is online and uses WebRTC."""
        part = await self._part(self._check_caller)
        if presence(part.seen, self.now(), online=part.online, gone=part.gone) is not Presence.ONLINE:
            raise MachineError(
                f"{part.name} is offline",
                kind=ErrorKind.UNAVAILABLE,
                remedy="switch it on, and check its network connection",
            )
        if not part.reported.get(signalling.REPORTED):
            raise _unknown_host(self._metadata(HOST))
        return part

    def _config(self) -> Mapping[str, Any]:
        return {
            "additional_ice_servers": self.cloud.ice.offered(self.author.name, self.now()),
            "disable_trickle": False,
        }

    def _init(self, offer: Offer) -> Mapping[str, Any]:
        return {
            "sdp": offer.sdp,
            "optional_config": {**self._config(), "disable_trickle": not offer.trickle},
            "deadline": offer.expires,
            "caller_auth_entity": offer.caller.name,
            "caller_auth_metadata": {"type": offer.caller.type},
        }

    # ---- signals

    async def _taken(self, part: str) -> Offer | None:
        return await self.cloud.store.write(lambda sql: signalling.take(sql, part, self.now()))

    async def _forward(self, offer: Offer, answers: AsyncIterator[Any], finished: trio.Event) -> None:
        """Send the machine's answers to the caller, and set `finished` after the last one."""
        answered = False
        async for message in answers:
            stage = message.WhichOneof("stage")
            if stage is None:
                continue
            if message.uuid != offer.id:
                raise MachineError(f"uuid: {message.uuid[:40]!r} is not {offer.id!r}", kind=ErrorKind.INVALID)
            if stage == "init" and answered:
                raise MachineError("the session description was sent twice", kind=ErrorKind.INVALID)
            answered = answered or stage == "init"
            content = _answer_content(message, stage)
            await self.cloud.store.write(partial(signalling.send, offer=offer, receiver=End.CALLER, content=content))
            if stage in ("done", "error"):
                break
        finished.set()
        self.cloud.events.notify(signalling.SIGNALLED, offer.id)

    async def _signals(
        self, offer: Offer, receiver: End, side: SideTask, finished: trio.Event | None = None
    ) -> AsyncGenerator[PeerSignal, None]:
        """Yield the signals for one end until `finished` is set, the caller has ended, or the offer expires.

        Also ends when the cloud stops.
        """
        begin = 0

        def work(sql: Sql) -> tuple[list[PeerSignal], bool]:
            try:
                _, ended = signalling.offer_of(sql, offer.id, self.now())
            except MachineError:
                return [], True
            return list(signalling.received(sql, offer.id, receiver, begin)), ended

        deadline = trio.current_time() + (offer.expires - self.now()).total_seconds()
        with self.cloud.events.listening(signalling.SIGNALLED, offer.id) as news:
            while not (finished is not None and finished.is_set()) and not self.cloud.openings.closing:
                arrived, ended = await side.until(lambda: self.cloud.store.read(work))
                for signal in arrived:
                    begin = signal.number + 1
                    yield signal
                if ended or not await side.until(lambda: _arrived(news, deadline - trio.current_time())):
                    return


async def _arrived(news: Listener, seconds: float) -> bool:
    """Wait for an event; return False if there is none within `seconds`."""
    with trio.move_on_after(max(0.0, seconds)):
        await news.all()
        return True
    return False


def _unknown_host(hosts: list[str]) -> MachineError:
    """Return the error for a host that clients should dial without WebRTC; they recognize the first words."""
    return MachineError(
        "host not preconfigured",
        kind=ErrorKind.INVALID,
        remedy=f"{hosts[0][:100]!r} is not a machine that uses WebRTC" if hosts else f"name a machine in {HOST}",
    )


def _status(problem: Mapping[str, Any]) -> Status:
    try:
        return Status(problem["code"])
    except ValueError:
        return Status.UNKNOWN


def _content(candidate: Candidate | None, *, done: bool, error: Problem | None) -> Mapping[str, Any]:
    """Return an update of a caller as a stage of AnswerRequest."""
    if candidate is not None:
        return {"update": {"candidate": _set_fields(asdict(candidate))}}
    if error is not None:
        return {"error": {"status": {"code": error.code, "message": error.message[:MAX_ERROR]}}}
    if done:
        return {"done": {}}
    raise MachineError("the update is empty", kind=ErrorKind.INVALID, remedy="set candidate, done or error")


def _answer_content(message: Any, stage: str) -> Mapping[str, Any]:
    """Return an answer of a machine as a stage of CallResponse; `done` and `error` end the call."""
    if stage == "init":
        SDP.check(len(message.init.sdp), "the session description")
        return {"init": {"sdp": message.init.sdp}}
    if stage == "update":
        candidate = message.update.candidate
        return {"update": {"candidate": {field.name: value for field, value in candidate.ListFields()}}}
    if stage == "error":
        return {"error": {"code": message.error.status.code, "message": message.error.status.message[:MAX_ERROR]}}
    return {"done": {}}


def _set_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
