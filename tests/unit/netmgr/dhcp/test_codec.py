"""Messages of DHCP: round trips, options in parts, and hostile input."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netmgr.dhcp.codec import (
    MAX_SIZE,
    MIN_SIZE,
    REQUEST,
    DhcpKind,
    DhcpMessage,
    Option,
    decode,
    domain_of,
    encode,
    names_of,
    routes_of,
)
from netmgr.dhcp.socket import checksum, packet, payload

MAC = bytes.fromhex("020000000001")
ADDRESSES = st.integers(0, 2**32 - 1).map(IPv4Address)
MESSAGES = st.builds(
    DhcpMessage,
    op=st.sampled_from([1, 2]),
    xid=st.integers(0, 2**32 - 1),
    mac=st.binary(min_size=6, max_size=6),
    secs=st.integers(0, 2**16 - 1),
    flags=st.sampled_from([0, 0x8000]),
    ciaddr=ADDRESSES,
    yiaddr=ADDRESSES,
    giaddr=ADDRESSES,
    options=st.dictionaries(st.integers(1, 254).filter(lambda code: code != 52), st.binary(max_size=60), max_size=8),
)


@given(MESSAGES)
def test_round_trip(message: DhcpMessage) -> None:
    data = encode(message)
    assert len(data) >= MIN_SIZE
    assert decode(data) == message


@given(st.binary(max_size=600))
def test_no_bytes_cause_an_error(data: bytes) -> None:
    decode(data)
    routes_of(data)
    names_of(data)
    domain_of(data)
    payload(data)


@given(st.binary(max_size=300), MESSAGES)
def test_no_options_cause_an_error(data: bytes, message: DhcpMessage) -> None:
    decode(encode(message)[:240] + data)


def test_an_option_in_parts_is_one_value() -> None:
    whole = encode(DhcpMessage(op=REQUEST, xid=1, mac=MAC, options={Option.KIND: b"\x01"}))
    parts = whole[:240] + bytes((121, 3, 24, 10, 0, 121, 5, 0, 10, 0, 0, 1, 255))
    message = decode(parts)
    assert message is not None
    assert routes_of(message.options[Option.ROUTES]) == ((IPv4Network("10.0.0.0/24"), IPv4Address("10.0.0.1")),)


def test_options_in_the_fields_for_names_count() -> None:
    whole = bytearray(encode(DhcpMessage(op=REQUEST, xid=1, mac=MAC, options={52: b"\x03"})))
    whole[44:48] = bytes((53, 1, 5, 255))  # the server's name
    whole[108:112] = bytes((12, 1, 0x61, 255))  # the file
    message = decode(bytes(whole))
    assert message is not None
    assert message.kind == DhcpKind.ACK
    assert message.options[Option.HOSTNAME] == b"a"


@pytest.mark.parametrize(
    ("value", "routes"),
    [
        (bytes((0, 10, 0, 0, 1)), ["0.0.0.0/0 10.0.0.1"]),
        (
            bytes((24, 192, 168, 5, 10, 0, 0, 1, 32, 1, 2, 3, 4, 10, 0, 0, 2)),
            ["192.168.5.0/24 10.0.0.1", "1.2.3.4/32 10.0.0.2"],
        ),
        (bytes((33, 1, 2, 3, 4, 5, 10, 0, 0, 1)), []),
        (bytes((24, 192, 168, 5, 10, 0)), []),
        (b"", []),
    ],
)
def test_classless_routes(value: bytes, routes: list[str]) -> None:
    assert [f"{network} {gateway}" for network, gateway in routes_of(value)] == routes


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (b"\x03lab\x07example\x00\x05plant\xc0\x04", ("lab.example", "plant.example")),
        (b"\x03lab\x00\x03lab\x00", ("lab",)),
        (b"\xc0\x00", ()),  # a pointer to itself
        (b"\x03la b\x00", ()),
        (b"\x03la\n\x00", ()),
        (b"\x40" + b"a" * 64 + b"\x00", ()),
        (b"\x03lab", ()),
    ],
)
def test_search_domains(value: bytes, names: tuple[str, ...]) -> None:
    assert names_of(value) == names


def test_a_domain_cannot_smuggle_a_line_into_a_file() -> None:
    assert domain_of(b"lab.example\0") == ("lab.example",)
    assert domain_of(b"lab.example\nnameserver 6.6.6.6") == ("lab.example", "nameserver", "6.6.6.6")
    assert domain_of(b"a..b") == ()


def test_packets_have_valid_checksums() -> None:
    data = packet(b"abc", (IPv4Address("10.0.0.1"), 68), (IPv4Address("10.0.0.2"), 67))
    assert checksum(data[:20]) == 0
    pseudo = data[12:20] + bytes((0, 17)) + data[24:26] + data[20:]
    assert checksum(pseudo) == 0
    assert payload(data) == b"abc"
    assert payload(data + b"padding of Ethernet") == b"abc"
    for length in range(len(data)):
        assert payload(data[:length]) == b""


def test_a_message_has_at_most_the_largest_size() -> None:
    whole = encode(DhcpMessage(op=REQUEST, xid=1, mac=MAC, options={})).ljust(MAX_SIZE, b"\0")
    assert decode(whole) is not None
    assert decode(whole + b"\0") is None
