"""The certificate of a machine's port: when it is requested, stored and served."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from structlog.testing import capture_logs
from trio.testing import MockClock

from cloud.domain.certificates.issue import CertificatePair, new_leaf, new_root
from rpc.api.client import find_method
from rpc.api.memory import MemoryChannel
from runtime.parts.data.files.disk import InlineDisk
from support.worker import Worker
from uplink.authorities import CloudAuthorities, authorities_path
from uplink.certificate import CLAIMED, FIRST_DELAY, HOUR, MAX_DELAY, QUIET, CloudCertificate, certificate_path
from uplink.contact import Contact
from uplink.dial import CloudAddress

METHOD = find_method("viam.app.v1.RobotService", "certificate")
NOW = datetime.now(UTC)
ROOT = new_root("test", NOW)
OTHER = new_root("other", NOW)


def pair(*names: str, root: CertificatePair = ROOT) -> CertificatePair:
    leaf = new_leaf(root, names or ("localhost",), NOW)
    return CertificatePair(leaf.certificate + root.certificate, leaf.key)


class Cloud:
    """A cloud in memory that issues certificates; `answer` may be an error. Also an address with a channel to it."""

    part = "part-1"

    def __init__(self) -> None:
        self.answer: CertificatePair | GRPCError = pair()
        self.asked: list[tuple[float, str]] = []  # time, and claimed names
        self.contact = Contact()
        self.heard = trio.Event()

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[MemoryChannel]:
        yield MemoryChannel(self)

    def get(self, path: str) -> Handler | None:
        assert path == METHOD.path
        return Handler(self._certificate, Cardinality.UNARY_UNARY, METHOD.request_class, METHOD.reply_class)

    async def _certificate(self, stream: Any) -> None:
        request = await stream.recv_message()
        assert request.id == self.part
        self.asked.append((trio.current_time(), str(stream.metadata.get(CLAIMED))))
        self.heard.set()
        if isinstance(self.answer, GRPCError):
            raise self.answer
        reply = METHOD.reply_class(
            id=self.part, tls_certificate=self.answer.certificate, tls_private_key=self.answer.key
        )
        await stream.send_message(reply)


class Machine:
    """A certificate and its environment under control of the test."""

    def __init__(self, cloud: Cloud, folder: Path, nursery: trio.Nursery) -> None:
        self.cloud = cloud
        self.path = certificate_path(folder / "home", cloud.part)
        self.names = ["pi4", "192.168.7.5"]
        self.ring: Callable[[], None] = lambda: None
        self.changed = 0
        self.certificate = self.made()
        self._nursery = nursery
        self._disk = cast("Worker", InlineDisk())

    def made(self) -> CloudCertificate:
        moves: Callable[[Callable[[], None]], Awaitable[None]] = self._moves
        address = cast("CloudAddress", self.cloud)
        self.authorities = CloudAuthorities(None, authorities_path(self.path.parent, self.cloud.part))
        return CloudCertificate(
            address, self.path, self.authorities, names=lambda: [*self.names], address_changes=moves
        )

    async def _moves(self, ring: Callable[[], None]) -> None:
        self.ring = ring
        await trio.sleep_forever()

    async def start(self) -> None:
        def changed() -> None:
            self.changed += 1

        await self._nursery.start(
            lambda task_status: self.certificate.follow(self._disk, changed, task_status=task_status)
        )
        await trio.sleep(0.1)

    @property
    def fingerprint(self) -> str:
        facts = self.certificate.tls.facts
        return facts.fingerprint if facts is not None else ""


@pytest.fixture
async def machine(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Machine]:
    yield Machine(Cloud(), tmp_path, nursery)
    nursery.cancel_scope.cancel()


@pytest.fixture
def messages() -> Iterator[Sequence[Any]]:
    """Capture the log."""
    with capture_logs() as entries:
        yield entries


async def test_the_first_answer_is_served_stored_and_logged(autojump_clock: MockClock, machine: Machine) -> None:
    assert machine.certificate.tls.context is None
    await machine.start()
    assert machine.certificate.tls.context is not None
    assert machine.changed == 1
    assert machine.certificate.roots == ROOT.certificate
    assert machine.cloud.asked[0][1] == "pi4,192.168.7.5"
    assert stat.S_IMODE(machine.path.stat().st_mode) == 0o600
    again = machine.made()
    again.load()
    assert again.tls.facts == machine.certificate.tls.facts
    assert again.roots == ROOT.certificate


async def test_it_asks_each_hour_and_the_same_answer_changes_nothing(
    autojump_clock: MockClock, machine: Machine
) -> None:
    await machine.start()
    context, kept = machine.certificate.tls.context, machine.path.stat().st_ino
    await trio.sleep(10 * HOUR)
    assert 10 <= len(machine.cloud.asked) <= 13
    assert machine.certificate.tls.context is context
    assert machine.path.stat().st_ino == kept
    assert machine.changed == 1


async def test_a_new_answer_takes_the_place_of_the_old_one(autojump_clock: MockClock, machine: Machine) -> None:
    await machine.start()
    before = machine.fingerprint
    machine.cloud.answer = pair()
    await trio.sleep(HOUR)
    assert machine.fingerprint not in ("", before)
    assert machine.changed == 1  # the port already has its certificate
    again = machine.made()
    again.load()
    assert again.tls.facts == machine.certificate.tls.facts


async def test_other_addresses_are_a_reason_to_ask(autojump_clock: MockClock, machine: Machine) -> None:
    await machine.start()
    machine.ring()  # a change that does not affect names
    await trio.sleep(60)
    assert len(machine.cloud.asked) == 1
    machine.names = ["pi4", "192.168.7.6"]
    machine.ring()
    await trio.sleep(5)
    assert [names for _, names in machine.cloud.asked] == ["pi4,192.168.7.5", "pi4,192.168.7.6"]


async def test_another_name_in_the_configuration_is_a_reason_to_ask(
    autojump_clock: MockClock, machine: Machine
) -> None:
    machine.certificate.configured("a")
    await machine.start()
    machine.certificate.configured("a")
    await trio.sleep(60)
    assert len(machine.cloud.asked) == 1
    machine.certificate.configured("b")
    await trio.sleep(5)
    assert len(machine.cloud.asked) == 2


async def test_an_outage_is_reported_once_and_ends_when_the_cloud_is_back(
    autojump_clock: MockClock, machine: Machine, messages: Sequence[Any]
) -> None:
    machine.cloud.answer = GRPCError(Status.UNAVAILABLE, "the database is away")
    await machine.start()
    await trio.sleep(600)
    waits = [
        later - before for (before, _), (later, _) in zip(machine.cloud.asked, machine.cloud.asked[1:], strict=False)
    ]
    assert waits[0] <= FIRST_DELAY
    assert MAX_DELAY / 2 <= waits[-1] <= MAX_DELAY
    assert len([message for message in messages if message["event"] == "no certificate from the cloud"]) == 1
    machine.cloud.answer = pair()
    machine.cloud.contact.mark_reached()
    await trio.sleep(0.1)
    assert machine.certificate.tls.context is not None
    assert machine.changed == 1


async def test_a_cloud_that_gives_none_is_asked_each_hour(
    autojump_clock: MockClock, machine: Machine, messages: Sequence[Any]
) -> None:
    machine.cloud.answer = GRPCError(Status.FAILED_PRECONDITION, "this cloud is reached without TLS")
    await machine.start()
    await trio.sleep(10 * HOUR)
    assert 10 <= len(machine.cloud.asked) <= 13
    assert [message["still_used"] for message in messages] == ["none"]
    assert machine.certificate.tls.context is None
    assert machine.changed == 0


async def test_an_answer_that_cannot_be_used_changes_nothing(
    autojump_clock: MockClock, machine: Machine, messages: Sequence[Any]
) -> None:
    await machine.start()
    before = machine.fingerprint
    machine.cloud.answer = CertificatePair(pair().certificate, pair().key)
    await trio.sleep(HOUR)
    assert machine.fingerprint == before
    assert "does not belong" in messages[-1]["reason"]
    assert messages[-1]["still_used"].startswith("the certificate valid until 20")
    assert "PRIVATE" not in str(messages)


async def test_without_a_disk_it_is_served_all_the_same(
    autojump_clock: MockClock, machine: Machine, messages: Sequence[Any]
) -> None:
    machine.path.parent.mkdir()
    machine.path.mkdir()
    await machine.start()
    assert machine.certificate.tls.context is not None
    assert any("cannot be cached" in message["event"] for message in messages)


@pytest.mark.parametrize("content", [b"", b"nonsense", ROOT.certificate.encode(), b"\xff\xfe"])
def test_a_damaged_file_on_the_disk_is_replaced(tmp_path: Path, content: bytes, messages: Sequence[Any]) -> None:
    path = certificate_path(tmp_path, "part-1")
    path.write_bytes(content)
    held = CloudCertificate(cast("CloudAddress", Cloud()), path, CloudAuthorities(None, tmp_path / "none"))
    held.load()
    assert held.tls.context is None
    assert [message["event"] for message in messages] == ["the cached certificate cannot be used"]


def test_nothing_on_the_disk_is_nothing_to_tell(tmp_path: Path, messages: Sequence[Any]) -> None:
    nothing = CloudAuthorities(None, tmp_path / "none")
    CloudCertificate(cast("CloudAddress", Cloud()), certificate_path(tmp_path, "part-1"), nothing).load()
    assert messages == []


async def test_a_chain_without_its_root_tells_no_roots(autojump_clock: MockClock, machine: Machine) -> None:
    leaf = new_leaf(ROOT, ("localhost",), NOW)
    machine.cloud.answer = leaf
    await machine.start()
    assert machine.certificate.tls.context is not None
    assert machine.certificate.roots == ""


async def test_another_authority_is_a_reason_to_ask(autojump_clock: MockClock, machine: Machine) -> None:
    await machine.start()
    result = partial(machine.certificate.update_authorities, worker=cast("Worker", InlineDisk()))
    await result({"machines": ROOT.certificate})
    await trio.sleep(QUIET + 1)
    assert len(machine.cloud.asked) == 1  # it has signed the existing certificate
    machine.cloud.answer = pair(root=OTHER)
    before = machine.fingerprint
    for _ in range(2):
        await result({"machines": OTHER.certificate + ROOT.certificate})
        await trio.sleep(QUIET + 1)
        assert len(machine.cloud.asked) == 2
    assert machine.fingerprint != before
    assert machine.certificate.roots == OTHER.certificate + ROOT.certificate  # for machines that did not exist yet


async def test_an_authority_that_signs_nothing_yet_is_asked_for_once(
    autojump_clock: MockClock, machine: Machine
) -> None:
    await machine.start()
    for _ in range(3):
        await machine.certificate.update_authorities({"machines": OTHER.certificate}, cast("Worker", InlineDisk()))
        await trio.sleep(QUIET + 1)
    assert len(machine.cloud.asked) == 2
