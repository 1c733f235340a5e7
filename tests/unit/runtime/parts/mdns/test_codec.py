"""Messages of multicast DNS, compared with bytes from RFC 1035 and with dnspython, and decoding of arbitrary bytes."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import dns.message
import dns.rdatatype
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpc.network.mdns import (
    AAAA,
    ANY,
    MAX_MESSAGE,
    NSEC,
    PTR,
    SRV,
    TXT,
    A,
    Data,
    DnsRecord,
    MdnsError,
    Message,
    Present,
    Question,
    Service,
    decode,
    encode,
    flags_of,
    key,
)

SERVICE = ("_rpc", "_tcp", "local")
ROVER = ("rover", *SERVICE)
HOST = ("rover", "local")

QUERY = (
    b"\0\0" b"\0\0" b"\0\1" b"\0\0" b"\0\0" b"\0\0"  # id, flags, one question
    b"\x04_rpc\x04_tcp\x05local\0" b"\0\x0c" b"\x80\x01"  # PTR, class IN with the unicast bit
)  # fmt: skip

RESPONSE = (
    b"\0\0" b"\x84\0" b"\0\0" b"\0\2" b"\0\0" b"\0\1"  # an authoritative answer
    b"\x04_rpc\x04_tcp\x05local\0" b"\0\x0c" b"\0\1" b"\0\0\x11\x94" b"\0\x08" b"\x05rover\xc0\x0c"
    b"\xc0\x27" b"\0\x21" b"\x80\1" b"\0\0\0\x78" b"\0\x13" b"\0\0" b"\0\0" b"\x1f\x90" b"\x05rover\x05local\0"
    b"\xc0\x41" b"\0\1" b"\x80\1" b"\0\0\0\x78" b"\0\4" b"\x0a\x4d\0\1"
)  # fmt: skip


def test_a_query_as_bytes() -> None:
    query = Message((Question(SERVICE, PTR, unicast=True),))
    assert encode(query) == QUERY
    assert decode(QUERY) == query


def test_a_response_as_bytes() -> None:
    response = Message(
        answers=(
            DnsRecord(SERVICE, PTR, ROVER, 4500),
            DnsRecord(ROVER, SRV, Service(8080, HOST), 120, flush=True),
        ),
        additionals=(DnsRecord(HOST, A, IPv4Address("10.77.0.1"), 120, flush=True),),
        response=True,
    )
    assert encode(response) == RESPONSE
    assert decode(RESPONSE) == response


def test_dnspython_reads_our_messages() -> None:
    everything = Message(
        (Question(SERVICE, PTR), Question(HOST, ANY)),
        (
            DnsRecord(SERVICE, PTR, ("rover.example", *SERVICE), 4500),
            DnsRecord(ROVER, TXT, (b"grpc", b"a=b"), 4500),
            DnsRecord(ROVER, SRV, Service(8080, HOST), 120),
            DnsRecord(HOST, A, IPv4Address("10.0.0.1"), 120),
            DnsRecord(HOST, AAAA, IPv6Address("fe80::1"), 120),
            DnsRecord(HOST, NSEC, Present(frozenset((A, AAAA))), 120),
        ),
        response=True,
        id=7,
    )
    result = dns.message.from_wire(encode(everything), one_rr_per_rrset=True)
    assert result.id == 7
    assert [(str(item.name), dns.rdatatype.to_text(item.rdtype)) for item in result.question] == [
        ("_rpc._tcp.local.", "PTR"),
        ("rover.local.", "ANY"),
    ]
    assert [str(data) for element in result.answer for data in element] == [
        "rover\\.example._rpc._tcp.local.",
        '"grpc" "a=b"',
        "0 0 8080 rover.local.",
        "10.0.0.1",
        "fe80::1",
        "rover.local. A AAAA",
    ]


def test_messages_of_dnspython_are_read() -> None:
    text = 'id 9\nopcode QUERY\nflags QR AA\n;ANSWER\n_rpc._tcp.local. 60 IN PTR R.local.\nR.local. 60 IN TXT "x" "y"\n'
    decoded = decode(dns.message.from_text(text).to_wire())
    assert decoded.answers == (
        DnsRecord(SERVICE, PTR, ("R", "local"), 60),
        DnsRecord(("R", "local"), TXT, (b"x", b"y"), 60),
    )


LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=15)
NAMES = st.lists(LABELS, max_size=4).map(tuple)
NUMBERS = st.integers(0, 65535)


@st.composite
def records(draw: st.DrawFn) -> DnsRecord:
    kind = draw(st.sampled_from([A, AAAA, PTR, SRV, TXT, 99]))
    data: Data
    if kind == A:
        data = draw(st.ip_addresses(v=4))
    elif kind == AAAA:
        data = draw(st.ip_addresses(v=6))
    elif kind == PTR:
        data = draw(NAMES)
    elif kind == SRV:
        data = Service(draw(NUMBERS), draw(NAMES), draw(NUMBERS), draw(NUMBERS))
    elif kind == TXT:
        data = tuple(draw(st.lists(st.binary(min_size=1, max_size=40), max_size=4)))
    else:
        data = draw(st.binary(max_size=40))
    return DnsRecord(draw(NAMES), kind, data, draw(st.integers(0, 2**32 - 1)), draw(st.booleans()))


SECTIONS = st.lists(records(), max_size=4).map(tuple)


@given(
    st.builds(
        Message,
        st.lists(st.builds(Question, NAMES, NUMBERS, st.booleans()), max_size=3).map(tuple),
        SECTIONS, SECTIONS, SECTIONS, st.booleans(), st.booleans(), NUMBERS,
    )
)  # fmt: skip
def test_written_values_are_read_back(message: Message) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=200), st.integers(0, len(RESPONSE)), st.integers(0, 255))
def test_anything_is_read_or_refused(noise: bytes, at: int, byte: int) -> None:
    changed = RESPONSE[:at] + bytes((byte,)) + RESPONSE[at + 1 :]
    for data in (noise, RESPONSE[:12] + noise, RESPONSE[:at], changed):
        try:
            decode(data)
        except MdnsError:
            pass


HEAD = b"\0\0\x84\0\0\0\0\1\0\0\0\0"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "a message of 0 bytes"),
        (b"\0" * (MAX_MESSAGE + 1), "a message of 9001 bytes"),
        (b"\0\0\x84\3" + b"\0" * 8, "neither a query"),
        (b"\0\0\x08\0" + b"\0" * 8, "neither a query"),
        (b"\0\0\0\0\xff\xff" + b"\0" * 6, "65535 questions"),
        (HEAD, "ends after the message"),
        (HEAD + b"\xc0\x0c", "points forwards"),
        (HEAD + b"\xc0\xff", "points forwards"),
        (HEAD + b"\xc0", "ends after the message"),
        (HEAD + b"\x40", "unknown kind"),
        (HEAD + b"\x05ab", "too long"),
        (HEAD + b"\x3f" + b"a" * 63 + (b"\x3f" + b"a" * 63) * 3 + b"\0", "too long"),
        (HEAD + b"\0\0\1\0\1\0\0\0\0\0\5abcde", "wrong length"),
        (HEAD + b"\0\0\1\0\1\0\0\0\0\0\4abc", "ends after the message"),
        (HEAD + b"\0\0\1\0\1", "too early"),
        (HEAD + b"\0\0\x10\0\1\0\0\0\0\0\2\5a", "text ends after"),
        (HEAD + b"\0\0\x0c\0\1\0\0\0\0\0\1\1a\0", "name ends after its record"),
        (HEAD + b"\0\0\x21\0\1\0\0\0\0\0\3abc", "too early"),
    ],
)
def test_hostile_bytes(data: bytes, reason: str) -> None:
    with pytest.raises(MdnsError, match=reason):
        decode(data)


def test_pointers_in_a_circle_end() -> None:
    begin = len(HEAD)
    circle = HEAD + bytes((1, 97, 0xC0, begin))  # a, then a pointer back to it: each pointer must lead further back
    with pytest.raises(MdnsError):
        decode(circle)


@pytest.mark.parametrize(
    "record",
    [
        DnsRecord(("",), A, IPv4Address(1), 1),
        DnsRecord(("x" * 64,), A, IPv4Address(1), 1),
        DnsRecord(("x" * 60,) * 5, A, IPv4Address(1), 1),
        DnsRecord(("x",), TXT, (b"x" * 256,), 1),
    ],
)
def test_messages_that_cannot_be_written(record: DnsRecord) -> None:
    with pytest.raises(MdnsError):
        encode(Message(answers=(record,)))


def test_records_of_other_classes_are_left_out() -> None:
    assert decode(HEAD + b"\0\0\1\0\3\0\0\0\0\0\4abcd").answers == ()


def test_names_are_compared_without_case() -> None:
    assert key(("Rover", "LOCAL")) == key(("rover", "local"))
    assert key(("Ä",)) != key(("ä",))
    first, other = (
        DnsRecord(("A",), SRV, Service(1, ("H",)), 5),
        DnsRecord(("a",), SRV, Service(1, ("h",)), 9, flush=True),
    )
    assert first.same(other)
    assert not first.same(DnsRecord(("a",), SRV, Service(2, ("h",)), 5))
    assert DnsRecord(("A",), PTR, ("X",), 5).same(DnsRecord(("a",), PTR, ("x",), 5))


def test_texts_with_keys() -> None:
    assert flags_of((b"grpc", b"a=1", b"A=2", b"=x", b"b=", b"c=d=e")) == {"grpc": None, "a": "1", "b": "", "c": "d=e"}
