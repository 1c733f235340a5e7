"""DNS, STUN and ICMP with published examples, handwritten bytes and arbitrary input."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.parts.netcheck import dns, icmp, stun

# RFC 5769, sections 2.2 and 2.3: sample IPv4 and IPv6 responses, without the attributes after the address
TRANSACTION = bytes.fromhex("b7e7a701bc34d686fa87dfae")
RESPONSE_V4 = bytes.fromhex("0101003c2112a442") + TRANSACTION + bytes.fromhex(
    "8022000b7465737420766563746f7220" "002000080001a147e112a643"
)  # fmt: skip
RESPONSE_V6 = bytes.fromhex("010100482112a442") + TRANSACTION + bytes.fromhex(
    "8022000b7465737420766563746f7220" "002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9"
)  # fmt: skip


def test_a_dns_question_as_rfc_1035_writes_it() -> None:
    assert dns.query(0xABCD, "dns.google") == bytes.fromhex(
        "001cabcd0100000100000000000003646e7306676f6f676c650000010001"
    )


def dns_message(number: int, flags: int, addresses: list[str]) -> bytes:
    question = b"\x03dns\x06google\0" + struct.pack(">HH", 1, 1)
    records = b"".join(
        b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 300, 4) + socket.inet_aton(address) for address in addresses
    )
    return struct.pack(">6H", number, flags, 1, len(addresses), 0, 0) + question + records


def test_a_dns_answer() -> None:
    assert dns.answer(dns_message(7, 0x8180, ["8.8.8.8", "8.8.4.4"]), 7) == ["8.8.8.8", "8.8.4.4"]
    assert dns.answer(dns_message(7, 0x8180, []), 7) == []


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (dns_message(8, 0x8180, []), "not an answer to this query"),
        (dns_message(7, 0x0100, []), "not an answer to this query"),
        (dns_message(7, 0x8183, []), "no such name"),
        (dns_message(7, 0x8182, []), "failed"),
        (dns_message(7, 0x818F, []), "error 15"),
        (dns_message(7, 0x8180, ["8.8.8.8"])[:-3], "cut off"),
        (b"short", "cut off"),
    ],
)
def test_invalid_dns_answers(message: bytes, words: str) -> None:
    with pytest.raises(dns.DnsError, match=words):
        dns.answer(message, 7)


@given(st.binary(max_size=80))
def test_any_dns_message_is_read_or_refused(data: bytes) -> None:
    try:
        dns.answer(b"\0\x07\x81\x80" + data, 7)
    except dns.DnsError:
        pass


def test_the_stun_answers_of_rfc_5769() -> None:
    assert stun.answer(RESPONSE_V4, TRANSACTION) == ("192.0.2.1", 32853)
    assert stun.answer(RESPONSE_V6, TRANSACTION) == ("2001:db8:1234:5678:11:2233:4455:6677", 32853)


def test_a_stun_request_is_a_header_and_nothing_else() -> None:
    request = stun.request(TRANSACTION)
    assert request == bytes.fromhex("000100002112a442") + TRANSACTION
    assert stun.length(request) == 0
    assert stun.transaction_of(request) == TRANSACTION


def test_an_old_server_names_the_address_plainly() -> None:
    plain = struct.pack(">HHBBH4s", 1, 8, 0, 1, 4711, socket.inet_aton("192.0.2.7"))
    message = struct.pack(">HHI", 0x0101, len(plain), stun.COOKIE) + TRANSACTION + plain
    assert stun.answer(message, TRANSACTION) == ("192.0.2.7", 4711)


@pytest.mark.parametrize(
    "message",
    [
        RESPONSE_V4[:4] + b"????" + RESPONSE_V4[8:],
        bytes.fromhex("0111") + RESPONSE_V4[2:],  # an error response
        RESPONSE_V4[:36],
        RESPONSE_V4[:-2],
        b"",
    ],
)
def test_invalid_stun_answers(message: bytes) -> None:
    with pytest.raises(stun.StunError):
        stun.answer(message, TRANSACTION)


def test_the_answer_to_another_request_is_not_ours() -> None:
    with pytest.raises(stun.StunError, match="this request"):
        stun.answer(RESPONSE_V4, bytes(12))


@given(st.binary(max_size=80))
def test_any_stun_message_is_read_or_refused(data: bytes) -> None:
    head = struct.pack(">HHI", 0x0101, len(data), stun.COOKIE) + TRANSACTION
    try:
        stun.answer(head + data, TRANSACTION)
    except stun.StunError:
        pass


def test_an_echo_request_has_the_right_checksum() -> None:
    packet = icmp.request(0x1234, 5)
    assert packet[:2] == b"\x08\0"
    assert icmp.checksum(packet) == 0
    assert struct.unpack_from(">HH", packet, 4) == (0x1234, 5)


def test_the_checksum_of_rfc_1071() -> None:
    """Section 3, the example: the sum is ddf2, its complement 220d."""
    assert icmp.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D


def test_replies_with_and_without_the_head_of_ip() -> None:
    reply = struct.pack(">BBHHH", 0, 0, 0, 9, 3) + b"machine-server"
    assert icmp.reply_sequence(reply) == 3
    assert icmp.reply_sequence(b"\x45" + bytes(19) + reply) == 3
    assert icmp.reply_sequence(icmp.request(9, 3)) is None  # our own request, seen on loopback
    assert icmp.reply_sequence(b"") is None
    assert icmp.reply_sequence(b"\x45" + bytes(19)) is None
