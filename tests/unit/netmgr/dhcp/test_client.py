"""The DHCP client: its phases, renewals, servers that lie, and the hotspot's server over a bad network."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace

from netmgr.dhcp import client as machine
from netmgr.dhcp.client import MIN_LEASE, NAK_WAIT, Client, ClientIdentity, DhcpPhase, DhcpStep, lease_of
from netmgr.dhcp.codec import REPLY, DhcpKind, DhcpMessage, Option, decode, encode
from netmgr.dhcp.server import DhcpServer

ME = ClientIdentity(mac=bytes.fromhex("020000000001"), hostname="pi")
SERVER = IPv4Address("192.168.1.1")


def half() -> float:
    return 0.5


def answer(step: DhcpStep, kind: DhcpKind, **changes: object) -> DhcpMessage:
    """Return a usual answer to the last message; `changes` replaces options by name, and yiaddr."""
    question = step.send[-1].message
    options: dict[int, bytes] = {
        Option.KIND: bytes((kind,)),
        Option.SERVER: SERVER.packed,
        Option.MASK: b"\xff\xff\xff\0",
        Option.ROUTER: SERVER.packed,
        Option.DNS: SERVER.packed,
        Option.LEASE_TIME: (3600).to_bytes(4, "big"),
    }
    yiaddr = changes.pop("yiaddr", IPv4Address("192.168.1.50"))
    options |= {Option[name]: value for name, value in changes.items()}  # type: ignore[misc]
    return DhcpMessage(op=REPLY, xid=question.xid, mac=question.mac, yiaddr=yiaddr, options=options)  # type: ignore[arg-type]


def bound(now: float = 0.0) -> tuple[Client, DhcpStep]:
    step = machine.start(ME, None, now, half)
    step = machine.received(step.client, answer(step, DhcpKind.OFFER), now, half)
    request = step
    step = machine.received(step.client, answer(step, DhcpKind.ACK), now, half)
    return step.client, request


def test_a_lease_is_selected_and_requested() -> None:
    step = machine.start(ME, None, 0.0, half)
    assert step.send[0].message.kind == DhcpKind.DISCOVER
    step = machine.received(step.client, answer(step, DhcpKind.OFFER), 1.0, half)
    request = step.send[0].message
    assert (request.kind, request.address(Option.ADDRESS), request.address(Option.SERVER)) == (
        DhcpKind.REQUEST, IPv4Address("192.168.1.50"), SERVER,
    )  # fmt: skip
    step = machine.received(step.client, answer(step, DhcpKind.ACK), 1.5, half)
    assert step.client.phase is DhcpPhase.BOUND
    assert step.client.lease is not None
    assert step.client.lease.address == IPv4Interface("192.168.1.50/24")
    assert step.client.lease.obtained == 1.0, "it counts from the request, as the server counts from its answer"
    assert step.client.deadline == 1.0 + 1800.0


def test_a_silent_server_is_asked_ever_more_rarely() -> None:
    step = machine.start(ME, None, 0.0, half)
    times = [0.0]
    for _ in range(8):
        times.append(step.client.deadline)
        step = machine.expired(step.client, step.client.deadline, half)
        assert step.send[0].message.kind == DhcpKind.DISCOVER
    assert [later - earlier for earlier, later in pairwise(times)] == [2, 4, 8, 16, 32, 64, 64, 64]


def test_a_server_that_does_not_grant_its_offer_is_left() -> None:
    step = machine.start(ME, None, 0.0, half)
    step = machine.received(step.client, answer(step, DhcpKind.OFFER), 0.0, half)
    kinds = []
    for _ in range(5):
        step = machine.expired(step.client, step.client.deadline, half)
        kinds.append(step.send[0].message.kind)
    assert kinds == [DhcpKind.REQUEST] * 3 + [DhcpKind.DISCOVER] * 2


def test_the_remembered_address_is_requested_first() -> None:
    client, _ = bound()
    step = machine.start(ME, client.lease, 5.0, half)
    request = step.send[0].message
    assert (request.kind, request.address(Option.ADDRESS)) == (DhcpKind.REQUEST, IPv4Address("192.168.1.50"))
    assert Option.SERVER not in request.options
    other = machine.received(step.client, answer(step, DhcpKind.NAK), 5.0, half)
    assert other.client.deadline == 5.0, "another network: ask for its address at once"
    silent = machine.expired(step.client, step.client.deadline, half)
    silent = machine.expired(silent.client, silent.client.deadline, half)
    assert silent.send[0].message.kind == DhcpKind.DISCOVER


def test_a_lease_is_renewed_then_rebound_then_lost() -> None:
    client, _ = bound()
    step = machine.expired(client, 1800.0, half)
    assert (step.client.phase, step.send[0].server) == (DhcpPhase.RENEWING, SERVER)
    assert step.send[0].message.ciaddr == IPv4Address("192.168.1.50")
    step = machine.expired(step.client, 3150.0, half)
    assert (step.client.phase, step.send[0].server) == (DhcpPhase.REBINDING, None)
    assert step.client.lease is not None
    step = machine.expired(step.client, 3600.0, half)
    assert (step.client.phase, step.client.lease) == (DhcpPhase.SELECTING, None)


def test_a_renewed_lease_counts_from_its_request() -> None:
    client, _ = bound()
    step = machine.expired(client, 1800.0, half)
    step = machine.received(step.client, answer(step, DhcpKind.ACK), 1801.0, half)
    assert step.client.deadline == 1800.0 + 1800.0
    assert step.client.phase is DhcpPhase.BOUND


def test_a_refused_renewal_ends_the_lease_and_waits() -> None:
    client, _ = bound()
    step = machine.expired(client, 1800.0, half)
    step = machine.received(step.client, answer(step, DhcpKind.NAK), 1801.0, half)
    assert (step.client.lease, step.client.deadline) == (None, 1801.0 + NAK_WAIT)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda message: replace(message, xid=message.xid ^ 1), id="another number"),
        pytest.param(lambda message: replace(message, mac=b"\2\0\0\0\0\2"), id="another client"),
        pytest.param(lambda message: replace(message, op=1), id="a question"),
        pytest.param(
            lambda message: replace(message, options={**message.options, Option.SERVER: b"\x0a\0\0\x63"}),
            id="another server",
        ),
    ],
)
def test_answers_to_others_are_ignored(change: Callable[[DhcpMessage], DhcpMessage]) -> None:
    step = machine.start(ME, None, 0.0, half)
    step = machine.received(step.client, answer(step, DhcpKind.OFFER), 0.0, half)
    after = machine.received(step.client, change(answer(step, DhcpKind.ACK)), 0.0, half)
    assert after.client == step.client


@pytest.mark.parametrize(
    "changes",
    [
        {"yiaddr": IPv4Address("0.0.0.0")},
        {"yiaddr": IPv4Address("127.0.0.1")},
        {"yiaddr": IPv4Address("224.0.0.1")},
        {"yiaddr": IPv4Address("255.255.255.255")},
        {"yiaddr": IPv4Address("192.168.1.255")},
        {"yiaddr": IPv4Address("192.168.1.0")},
        {"MASK": b"\xff\0\xff\0"},
        {"MASK": b"\0\0\0\0"},
        {"LEASE_TIME": (5).to_bytes(4, "big")},
        {"LEASE_TIME": b"\x01"},
        {"SERVER": b""},
    ],
    ids=str,
)
def test_unusable_leases_are_not_taken(changes: dict[str, object]) -> None:
    step = machine.start(ME, None, 0.0, half)
    after = machine.received(step.client, answer(step, DhcpKind.OFFER, **changes), 0.0, half)
    assert after.client.phase is DhcpPhase.SELECTING


def test_wrong_details_of_a_lease_are_left_out() -> None:
    step = machine.start(ME, None, 0.0, half)
    lease = lease_of(
        answer(
            step,
            DhcpKind.ACK,
            ROUTER=b"\x7f\0\0\x01" + IPv4Address("192.168.1.50").packed + SERVER.packed,
            DNS=b"\xff\xff\xff\xff" + SERVER.packed,
            RENEWAL=(9000).to_bytes(4, "big"),
            REBINDING=(100).to_bytes(4, "big"),
            ROUTES=bytes((8, 127, 192, 168, 1, 1, 8, 10, 192, 168, 1, 1)),
            MTU=b"\x05",
        ),
        0.0,
    )
    assert lease is not None
    assert (lease.gateway, lease.dns, lease.mtu) == (SERVER, (SERVER,), None)
    assert (lease.renew, lease.rebind) == (1800.0, 3150.0)
    assert [str(network) for network, _ in lease.routes] == ["10.0.0.0/8"]


@pytest.mark.parametrize("seed", range(30))
def test_client_and_server_agree_over_a_network_that_loses_and_repeats_packets(seed: int) -> None:
    random, now = Random(seed), 0.0
    server = DhcpServer(IPv4Interface("10.42.0.1/24"))
    clients = {number: ClientIdentity(mac=bytes((2, 0, 0, 0, 0, number))) for number in range(1, 6)}
    states = {number: machine.start(identity, None, 0.0, random.random) for number, identity in clients.items()}
    air: list[tuple[float, int, DhcpMessage]] = []

    def sent(number: int, step: DhcpStep) -> None:
        states[number] = step
        for sending in step.send:
            for _ in range(random.choice([0, 1, 1, 2])):
                message = decode(encode(sending.message))
                assert message is not None
                reply = server.received(message, now)
                if reply is not None and random.random() < 0.8:
                    air.append((now + random.uniform(0, 5), number, reply))

    for number, step in list(states.items()):
        sent(number, step)
    while now < 4 * 3600:
        due = min((state.client.deadline for state in states.values()), default=now)
        arrival = min((time for time, _, _ in air), default=float("inf"))
        now = min(due, arrival)
        if arrival <= due:
            entry = next(entry for entry in air if entry[0] == arrival)
            air.remove(entry)
            sent(entry[1], machine.received(states[entry[1]].client, entry[2], now, random.random))
        else:
            number = next(number for number, state in states.items() if state.client.deadline == due)
            sent(number, machine.expired(states[number].client, now, random.random))
        leases = [state.client.lease for state in states.values() if state.client.lease is not None]
        assert len({lease.address for lease in leases}) == len(leases), "two clients have the same address"
    assert sum(state.client.lease is not None for state in states.values()) >= 4


@pytest.mark.parametrize(("seconds", "usable"), [(MIN_LEASE, True), (MIN_LEASE - 1, False)])
def test_a_lease_has_the_shortest_time_or_more(seconds: int, usable: bool) -> None:
    offer = answer(machine.start(ME, None, 0.0, half), DhcpKind.OFFER, LEASE_TIME=seconds.to_bytes(4, "big"))
    assert (lease_of(offer, 0.0) is not None) is usable
