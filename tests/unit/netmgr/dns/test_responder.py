"""The DNS server of the hotspot."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from netmgr.dns.responder import answer, serve_names
from rpc.network.mdns import AAAA, A, Message, Question, decode, encode

ADDRESS = IPv4Address("10.42.0.1")
NXDOMAIN, REFUSED = 3, 5


def query(name: str, kind: int = A, *, recursion: bool = True) -> bytes:
    data = encode(Message((Question(tuple(name.split(".")), kind),), id=0x1234))
    return data[:2] + (0x0100 if recursion else 0).to_bytes(2, "big") + data[4:]


def flags(data: bytes | None) -> int:
    assert data is not None
    return int(struct.unpack_from("!H", data, 2)[0])


def addresses(data: bytes | None) -> list[object]:
    assert data is not None
    plain = data[:2] + (0x8400).to_bytes(2, "big") + data[4:]
    return [record.data for record in decode(plain).answers]


@pytest.mark.parametrize(
    ("name", "redirect_all", "result"),
    [
        ("connectivitycheck.gstatic.com", True, [ADDRESS]),
        ("captive.apple.com", True, [ADDRESS]),
        ("captive.apple.com", False, []),
        ("machine.setup", False, [ADDRESS]),
        ("MACHINE.Setup", False, [ADDRESS]),
        ("setup.example.com", False, []),
    ],
)
def test_names(name: str, redirect_all: bool, result: list[object]) -> None:
    reply = answer(query(name), ADDRESS, redirect_all=redirect_all)
    assert addresses(reply) == result
    assert flags(reply) & 0xF == (0 if result else REFUSED)
    assert reply is not None
    assert reply[:2] == b"\x12\x34"


def test_a_name_has_no_ipv6_address_but_exists() -> None:
    reply = answer(query("captive.apple.com", AAAA), ADDRESS, redirect_all=True)
    assert (addresses(reply), flags(reply) & 0xF) == ([], 0)


def test_the_wish_for_recursion_is_repeated() -> None:
    assert flags(answer(query("a.b"), ADDRESS, redirect_all=True)) & 0x0100
    assert not flags(answer(query("a.b", recursion=False), ADDRESS, redirect_all=True)) & 0x0100


def test_answers_are_not_answered() -> None:
    reply = answer(query("a.b"), ADDRESS, redirect_all=True)
    assert reply is not None
    assert answer(reply, ADDRESS, redirect_all=True) is None


@given(st.binary(max_size=512))
def test_no_bytes_cause_an_error_or_a_long_answer(data: bytes) -> None:
    for candidate in (data, query("a.b")[:12] + data):
        reply = answer(candidate, ADDRESS, redirect_all=True)
        assert reply is None or len(reply) <= len(candidate) + 32


async def test_it_is_served() -> None:
    loopback = IPv4Address("127.0.0.1")
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[int]) -> None:
                await serve_names("", loopback, redirect_all=True, port=0, task_status=task_status)

            port = await nursery.start(run)
            with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as client:
                await client.connect(("127.0.0.1", port))
                await client.send(b"noise")
                await client.send(query("captive.apple.com"))
                assert addresses(await client.recv(512)) == [loopback]
            nursery.cancel_scope.cancel()
