"""Names on a network in memory, in virtual time: probing, conflicts, answers, times to live, goodbyes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import pytest
import structlog
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from rpc.network.mdns import (
    AAAA,
    ANY,
    NSEC,
    PORT,
    PTR,
    SRV,
    TXT,
    A,
    DnsRecord,
    Message,
    Name,
    Present,
    Question,
    Service,
    decode,
    encode,
)
from rpc.network.network_interfaces import Interface
from runtime.parts.mdns.announcer import PENDING, Announcer
from runtime.parts.mdns.names import Names, names_of
from runtime.parts.mdns.places import AnnouncedPlace
from runtime.parts.mdns.records import ENUMERATION, SERVICE, TEXTS, Zone
from runtime.parts.mdns.replies import Replies

HERE = IPv4Address("10.0.0.1")
OTHER = IPv4Address("10.0.0.2")
NAMES = names_of(["rover.example"], "host")
HOST = ("rover-example", "local")
INSTANCE = ("rover-example", *SERVICE)


class Ether:
    """A network that delivers each message to all members, including the sender."""

    def __init__(self) -> None:
        self.said: list[tuple[float, str, Message]] = []
        self.private: list[tuple[str, tuple[Any, ...], Message]] = []
        self.members: dict[str, Member] = {}

    async def say(self, sender: str, message: Message, port: int = PORT) -> None:
        data = encode(message)
        self.said.append((trio.current_time(), sender, decode(data)))
        for member in list(self.members.values()):
            if member.received is not None:
                await member.received(data, (sender, port), member)

    def of(self, sender: str, *, response: bool | None = None) -> list[tuple[float, Message]]:
        return [
            (moment, message)
            for moment, name, message in self.said
            if name == sender and response in (None, message.response)
        ]


class Member:
    """A network connection of one announcer."""

    def __init__(self, ether: Ether, address: str) -> None:
        self.ether = ether
        self.address = address
        self.received: Callable[[bytes, tuple[Any, ...], Any], Awaitable[None]] | None = None
        ether.members[address] = self

    async def multicast(self, data: bytes) -> None:
        await self.ether.say(self.address, decode(data))

    async def unicast(self, data: bytes, address: tuple[Any, ...]) -> None:
        self.ether.private.append((self.address, address, decode(data)))

    async def receive(self, received: Callable[[bytes, tuple[Any, ...], Any], Awaitable[None]]) -> None:
        self.received = received
        await trio.sleep_forever()

    def close(self) -> None:
        del self.ether.members[self.address]


def announcer(address: IPv4Address = HERE, *, port: int = 8080, own: frozenset[Any] = frozenset()) -> Announcer:
    place = AnnouncedPlace(Interface(2, "lan0", False, True, (address,)), port, (address,))
    return Announcer(place, NAMES, own | {address}, structlog.get_logger(), chance=lambda low, high: high)


@asynccontextmanager
async def living(ether: Ether, *announcers: Announcer) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for item in announcers:
            nursery.start_soon(item.run, [Member(ether, str(item.place.addresses[0]))])
        yield
        nursery.cancel_scope.cancel()


def ask(name: Name, kind: int, *, accepted: tuple[DnsRecord, ...] = (), unicast: bool = False, **more: Any) -> Message:
    return Message((Question(name, kind, unicast),), accepted, **more)


async def test_probed_announced_and_taken_back(autojump_clock: MockClock) -> None:
    ether = Ether()
    single = announcer()
    async with living(ether, single):
        await trio.sleep(3)
        assert single.announced
    probes = ether.of(str(HERE), response=False)
    assert [moment - probes[0][0] for moment, _ in probes] == pytest.approx([0, 0.25, 0.5])
    assert all(question.unicast and question.type == ANY for question in probes[0][1].questions)
    assert {record.data for record in probes[0][1].authorities} >= {HERE, Service(8080, HOST), TEXTS}
    assert not any(record.flush for record in probes[0][1].authorities)
    first, second, goodbye = ether.of(str(HERE), response=True)
    assert first[0] - probes[0][0] == pytest.approx(0.75)
    assert second[0] - first[0] == pytest.approx(1.0)
    assert first[1].answers == second[1].answers
    assert {(record.type, record.flush, record.ttl) for record in first[1].answers} == {
        (PTR, False, 4500), (SRV, True, 120), (TXT, True, 4500), (A, True, 120),
    }  # fmt: skip
    assert {replace(record, ttl=0) for record in first[1].answers} == set(goodbye[1].answers)


async def test_an_unannounced_service_sends_no_goodbye(autojump_clock: MockClock) -> None:
    ether = Ether()
    async with living(ether, announcer()):
        await trio.sleep(0.6)
    assert not ether.of(str(HERE), response=True)


async def test_the_second_of_one_name_gets_a_number(autojump_clock: MockClock) -> None:
    ether = Ether()
    first, second = announcer(), announcer(OTHER)
    async with living(ether, first):
        await trio.sleep(5)
        async with living(ether, second):
            await trio.sleep(5)
            assert first.announced
            assert second.announced
            assert first.names == NAMES
            assert second.names.instances == ("rover.example-2", "rover-example-2")
            assert second.names.hosts == (("rover-example-2", "local"), ("rover-2", "example", "local"))


async def test_of_two_that_probe_at_once_one_gives_way(autojump_clock: MockClock) -> None:
    ether = Ether()
    lower, higher = announcer(), announcer(OTHER)
    async with living(ether, lower, higher):
        await trio.sleep(10)
        assert higher.names == NAMES
        assert lower.names == NAMES.renamed(2)
        assert higher.announced
        assert lower.announced


async def test_interfaces_of_one_computer_on_one_network_agree(autojump_clock: MockClock) -> None:
    ether = Ether()
    own = frozenset((HERE, OTHER))
    first, other = announcer(own=own), announcer(OTHER, own=own)
    async with living(ether, first, other):
        await trio.sleep(10)
        assert first.names == other.names == NAMES
        assert first.announced
        assert other.announced


async def test_a_later_conflict_makes_it_probe_again(autojump_clock: MockClock) -> None:
    ether = Ether()
    first = announcer()
    async with living(ether, first):
        await trio.sleep(5)
        stranger = Message(answers=(DnsRecord(HOST, A, OTHER, 120, flush=True),), response=True)
        await ether.say("stranger", stranger, port=4000)  # ignored: it does not come from the mDNS port
        await wait_all_tasks_blocked()
        assert first.announced
        await ether.say("stranger", stranger)
        await wait_all_tasks_blocked()
        assert not first.announced
        await trio.sleep(5)  # no other host defends the name
        assert first.announced
        assert first.names == NAMES


async def test_many_conflicts_slow_it_down(autojump_clock: MockClock) -> None:
    ether = Ether()
    first = announcer()

    async def hostile() -> None:
        """Claim every name that is queried."""
        seen = 0
        while True:
            await trio.sleep(0.01)
            said, seen = ether.said[seen:], len(ether.said)
            for _, sender, message in said:
                for question in message.questions if sender == str(HERE) else ():
                    answer = DnsRecord(question.name, A, OTHER, 120, flush=True)
                    await ether.say("hostile", Message(answers=(answer,), response=True))

    with capture_logs() as lines:
        async with living(ether, first), trio.open_nursery() as nursery:
            nursery.start_soon(hostile)
            await trio.sleep(60)
            assert 15 < len(ether.of(str(HERE), response=False)) < 60
            nursery.cancel_scope.cancel()
    (line,) = [line for line in lines if line["log_level"] != "debug"]
    assert (line["log_level"], line["taken"], line["tried"]) == ("warning", "rover-example.local", 15)


async def asked(ether: Ether, query: Message, *, sender: str = "10.0.0.8", port: int = PORT, wait: float = 1.0) -> None:
    await trio.sleep(5)
    ether.said.clear()
    await ether.say(sender, query, port)
    await trio.sleep(wait)


async def test_shared_answers_wait_a_little_and_unique_ones_do_not(autojump_clock: MockClock) -> None:
    ether = Ether()
    async with living(ether, announcer()):
        await asked(ether, ask(SERVICE, PTR))
        ((moment, answer),) = ether.of(str(HERE))
        assert moment - ether.said[0][0] == pytest.approx(0.12)
        assert {record.data for record in answer.answers} == {INSTANCE, ("rover.example", *SERVICE)}
        assert {record.type for record in answer.additionals} == {SRV, TXT, A, NSEC}
        await asked(ether, ask(HOST, A))
        ((moment, answer),) = ether.of(str(HERE))
        assert moment == ether.said[0][0]
        assert [record.data for record in answer.answers] == [HERE]


async def test_known_answers_are_not_said_again(autojump_clock: MockClock) -> None:
    ether = Ether()
    half = DnsRecord(SERVICE, PTR, INSTANCE, 2250)
    less = DnsRecord(SERVICE, PTR, ("rover.example", *SERVICE), 2249)
    async with living(ether, announcer()):
        await asked(ether, ask(SERVICE, PTR, accepted=(half, less)))
        ((_, answer),) = ether.of(str(HERE))
        assert [record.data for record in answer.answers] == [less.data]


async def test_more_known_answers_may_follow(autojump_clock: MockClock) -> None:
    ether = Ether()
    instances = tuple(DnsRecord(SERVICE, PTR, (name, *SERVICE), 4500) for name in NAMES.instances)
    async with living(ether, announcer()):
        await asked(ether, ask(SERVICE, PTR, truncated=True), wait=0.3)
        assert not ether.of(str(HERE))
        await ether.say("10.0.0.8", Message(answers=instances))
        await trio.sleep(1)
        assert not ether.of(str(HERE))


async def test_nothing_is_multicast_twice_within_a_second(autojump_clock: MockClock) -> None:
    ether = Ether()
    async with living(ether, announcer()):
        await asked(ether, ask(HOST, A), wait=0.5)
        await ether.say("another", ask(HOST, A))
        await trio.sleep(0.2)
        assert len(ether.of(str(HERE))) == 1
        await trio.sleep(0.5)
        await ether.say("another", ask(HOST, A))
        await trio.sleep(0.2)
        assert len(ether.of(str(HERE))) == 2


async def test_a_probe_for_our_name_is_answered_at_once(autojump_clock: MockClock) -> None:
    ether = Ether()
    async with living(ether, announcer()):
        probe = Message(
            (Question(HOST, ANY, unicast=True),), authorities=(DnsRecord(HOST, A, IPv4Address("10.0.0.9"), 120),)
        )
        await asked(ether, probe)
        await ether.say("10.0.0.8", probe)
        assert [moment for moment, _ in ether.of(str(HERE))] == [ether.said[0][0], trio.current_time()]


async def test_unicast_questions_get_unicast_answers(autojump_clock: MockClock) -> None:
    ether = Ether()
    async with living(ether, announcer()):
        await asked(ether, ask(HOST, A, unicast=True))
        assert not ether.of(str(HERE))
        ((_, address, answer),) = ether.private
        assert address == ("10.0.0.8", PORT)
        assert answer.answers[0].data == HERE
        assert answer.answers[0].flush


async def test_ordinary_resolvers(autojump_clock: MockClock) -> None:
    ether = Ether()
    async with living(ether, announcer()):
        await asked(ether, ask(HOST, A, id=77), sender="10.0.0.77", port=40000)
        assert not ether.of(str(HERE))
        ((_, address, answer),) = ether.private
        assert address == ("10.0.0.77", 40000)
        assert (answer.id, answer.questions) == (77, (Question(HOST, A),))
        assert [(record.ttl, record.flush) for record in answer.answers] == [(10, False)]
        await ether.say("224.0.0.251", ask(HOST, A), port=40000)
        assert len(ether.private) == 1  # the forged sender gets no answer


@pytest.mark.parametrize("name", [("stranger", "local"), ("rover-example", "elsewhere"), ()])
async def test_other_names_are_not_answered(name: Name, autojump_clock: MockClock) -> None:
    ether = Ether()
    async with living(ether, announcer()):
        await asked(ether, ask(name, ANY))
        assert not ether.of(str(HERE))


async def test_garbage_and_floods(autojump_clock: MockClock) -> None:
    ether = Ether()
    first = announcer()
    async with living(ether, first):
        await trio.sleep(5)
        member = ether.members[str(HERE)]
        assert member.received is not None
        await member.received(b"\xff" * 100, ("x", PORT), member)
        for number in range(10 * PENDING):
            await ether.say(f"10.9.0.{number}", ask(SERVICE, PTR, truncated=True))
        assert len(first._pending) == PENDING
        await trio.sleep(2)
        assert len(ether.of(str(HERE))) < 10  # each record is sent at most once per second


# ---- what is pure


def test_names() -> None:
    assert names_of(["a.b"], "h") == Names(("a.b", "a-b"), (("a-b", "local"), ("a", "b", "local")))
    assert names_of(["", "a.local", "a"], "h").hosts == (("a-local", "local"), ("a", "local"))
    assert names_of([], "computer.lan") == Names(("computer",), (("computer", "local"),))
    assert names_of([""], "") == Names(("machine",), (("machine", "local"),))
    long = names_of(["x" * 80], "h")
    assert len(long.instances[0]) == 63
    assert len(long.renamed(12).instances[0]) == 63
    assert long.renamed(12).instances[0].endswith("-12")
    encode(Replies(Zone(names_of([".".join("y" * 50 for _ in range(4))], "h"), 1, [HERE])).announcement(0))


def test_absent_records_are_denied() -> None:
    zone = Zone(NAMES, 8080, [HERE])
    (absent,) = zone.answers(Question(HOST, AAAA))
    assert (absent.type, absent.data) == (NSEC, Present(frozenset((A,))))
    assert not zone.answers(Question(("other", "local"), AAAA))
    assert [record.data for record in zone.answers(Question(ENUMERATION, PTR))] == [SERVICE]
    assert zone.answers(Question(("ROVER-Example", "local"), A))


@pytest.mark.parametrize(
    ("record", "contradicts"),
    [
        (DnsRecord(HOST, A, OTHER, 120), True),
        (DnsRecord(HOST, A, HERE, 120), False),
        (DnsRecord(HOST, A, IPv4Address("10.0.0.3"), 120), False),  # its own record, from another interface
        (DnsRecord(HOST, A, OTHER, 0), False),  # a goodbye
        (DnsRecord(INSTANCE, SRV, Service(9, HOST), 120), True),
        (DnsRecord(INSTANCE, SRV, Service(8080, ("ROVER-EXAMPLE", "local")), 120), False),
        (DnsRecord(INSTANCE, TXT, (b"else",), 120), True),
        (DnsRecord(SERVICE, PTR, ("other", *SERVICE), 120), False),
        (DnsRecord(HOST, NSEC, b"", 120), False),
        (DnsRecord(("other", "local"), A, OTHER, 120), False),
    ],
)
def test_contradictions(record: DnsRecord, contradicts: bool) -> None:
    zone = Zone(NAMES, 8080, [HERE], own=frozenset((HERE, IPv4Address("10.0.0.3"))))
    assert zone.contradicts(record) is contradicts
