"""Multicast DNS: records and names of exactly the largest size."""

from __future__ import annotations

import pytest

from rpc.network.mdns import MAX_NAME, TXT, DnsRecord, MdnsError, Message, decode, encode

NAME = ("rover", "local")


def test_a_record_may_end_with_the_message() -> None:
    record = DnsRecord(NAME, TXT, (b"a=1",), 120)
    whole = encode(Message(answers=(record,), response=True))
    assert decode(whole).answers == (record,)
    with pytest.raises(MdnsError, match="ends after the message"):
        decode(whole[:-1])


def test_a_name_may_have_the_largest_size() -> None:
    labels = ("a" * 63, "b" * 63, "c" * 63, "d" * 61)
    assert sum(len(label) + 1 for label in labels) + 1 == MAX_NAME
    record = DnsRecord(labels, TXT, (b"a=1",), 120)
    assert decode(encode(Message(answers=(record,), response=True))).answers[0].name == labels
    with pytest.raises(MdnsError, match="longer than"):
        encode(Message(answers=(DnsRecord((*labels[:3], "d" * 62), TXT, (b"",), 120),)))
