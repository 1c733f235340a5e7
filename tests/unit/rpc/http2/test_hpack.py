from __future__ import annotations

import hpack as reference
import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.table import HeaderTable
from hypothesis import given
from hypothesis import strategies as st

from rpc.errors import (
    COMPRESSION_ERROR,
    ENHANCE_YOUR_CALM,
    PROTOCOL_ERROR,
    ConnectionFault,
    HeadersTooLarge,
    StreamFault,
)
from rpc.http2.codec import huffman
from rpc.http2.codec.hpack import STATIC_TABLE, Decoder, encode_header, encode_headers

TEXT = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=60)
NAMES = st.one_of(
    st.sampled_from([name for name, _ in STATIC_TABLE]), st.text("abcdefghijkl-", min_size=1, max_size=20)
)
FIELDS = st.lists(st.tuples(NAMES, TEXT), max_size=12)


def decoder(**limits: int) -> Decoder:
    return Decoder(**{"table_size": 4096, "max_list": 1 << 20, **limits})


def raw(fields: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


def test_static_table_is_that_of_the_rfc():
    assert raw(list(STATIC_TABLE)) == [tuple(entry) for entry in HeaderTable.STATIC_TABLE]


def test_codes_derived_from_lengths_are_those_of_the_rfc():
    assert huffman.codes() == list(zip(REQUEST_CODES, REQUEST_CODES_LENGTH, strict=True))


@given(st.lists(st.tuples(FIELDS, st.booleans()), max_size=8), st.sampled_from([0, 64, 200, 4096]))
def test_reads_what_the_reference_encoder_writes(blocks: list[tuple[list[tuple[str, str]], bool]], size: int):
    encoder, ours = reference.Encoder(), decoder()
    encoder.header_table_size = size
    for fields, compress in blocks:
        assert ours.decode(encoder.encode(raw(fields), huffman=compress)) == fields


@given(FIELDS)
def test_the_reference_decoder_reads_what_we_write(fields: list[tuple[str, str]]):
    decoded = reference.Decoder().decode(encode_headers(fields), raw=True)
    assert [tuple(field) for field in decoded] == raw(fields)


@given(st.lists(st.binary(max_size=80), min_size=1, max_size=4))
def test_agrees_with_the_reference_decoder_on_noise(blocks: list[bytes]):
    ours, theirs = decoder(), reference.Decoder(max_header_list_size=1 << 20)
    for block in blocks:
        try:
            expected = [
                (bytes(n).decode("latin-1"), bytes(v).decode("latin-1")) for n, v in theirs.decode(block, raw=True)
            ]
        except reference.HPACKError:
            with pytest.raises(ConnectionFault):
                ours.decode(block)
            return
        except Exception:  # the reference also raises errors outside its own hierarchy
            return
        fault = ""
        try:
            assert ours.decode(block) == expected
        except ConnectionFault as caught:
            fault = str(caught)
        if fault:
            stricter = ("line break", "integer", "update")  # cases in which ours is deliberately stricter
            assert any(word in fault for word in stricter)
            return


@given(st.binary(max_size=300))
def test_only_the_documented_errors(block: bytes):
    try:
        decoder(max_list=500).decode(block)
    except (ConnectionFault, StreamFault):
        pass


@given(st.binary(max_size=100))
def test_huffman_round_trip(data: bytes):
    encoder = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)
    assert huffman.decode(encoder.encode(data)).encode("latin-1") == data


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\xff\xff\xff\xff", "EOS"),  # thirty 1 bits
        (b"\x1f\xff", "padding"),  # 'a', then eleven 1 bits: a whole byte of padding
        (b"\x18", "padding"),  # 'a', then 0 bits
    ],
)
def test_huffman_padding(data: bytes, what: str):
    with pytest.raises(ConnectionFault, match=what) as caught:
        huffman.decode(data)
    assert caught.value.code == COMPRESSION_ERROR


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (b"\x80", "index 0"),
        (b"\xbe", "out of range"),  # index 62, but the table is empty
        (b"\xff\xff\xff\xff\xff\xff\x7f", "integer"),
        (b"\x3f\xe2\x1f", "table size"),  # size 4097
        (b"\x82\x20", "after a field"),
        (b"\x00\x05abc", "cut off"),
        (b"\x40", "cut off"),
        (b"\x00\x01a", "cut off"),
    ],
)
def test_errors_that_lose_the_hpack_state_end_the_connection(block: bytes, what: str):
    with pytest.raises(ConnectionFault, match=what) as caught:
        decoder().decode(block)
    assert caught.value.code == COMPRESSION_ERROR


@pytest.mark.parametrize("value", ["a\rb", "a\nb", "\0"])
def test_a_line_break_cannot_be_smuggled(value: str):
    with pytest.raises(ConnectionFault) as caught:
        decoder().decode(encode_header("x", value))
    assert caught.value.code == PROTOCOL_ERROR


def test_a_bomb_is_refused_without_growing_and_without_losing_the_table():
    ours = decoder(max_list=64 * 1024)
    encoder = reference.Encoder()
    ours.decode(encoder.encode([("bomb", "x" * 3900)]))
    with pytest.raises(StreamFault, match="header list") as caught:
        ours.decode(b"\xbe" * 60_000)  # decodes to 240 MB of text
    assert caught.value.reason == "header list size"
    assert ours.decode(b"\xbe") == [("bomb", "x" * 3900)]


def test_a_refused_block_still_changes_the_table():
    ours, encoder = decoder(max_list=100), reference.Encoder()
    with pytest.raises(StreamFault):
        ours.decode(encoder.encode([("a", "b" * 90), ("kept", "value")]))
    assert ours.decode(encoder.encode([("kept", "value")])) == [("kept", "value")]


@given(st.lists(st.tuples(st.lists(st.tuples(NAMES, TEXT), max_size=40), st.booleans()), max_size=8))
def test_refused_blocks_leave_the_table_of_the_reference(blocks: list[tuple[list[tuple[str, str]], bool]]):
    encoder, ours = reference.Encoder(), decoder(max_list=1500)
    for fields, compress in blocks:
        read: list[tuple[str, str]] = []
        ended = ""
        try:
            read = ours.decode(encoder.encode(raw(fields), huffman=compress))
        except HeadersTooLarge as fault:
            read = fault.fields
        except ConnectionFault as fault:
            ended = fault.reason
        if ended:  # far above the limit
            assert ended == "header list size"
            assert sum(len(name) + len(value) for name, value in fields) > 750
            return
        assert read == fields[: len(read)]
        assert len(read) == len(fields) or sum(len(name) + len(value) + 32 for name, value in fields) > 1500


@pytest.mark.parametrize("huffman", [False, True])
@pytest.mark.parametrize("size", [70_000, 16_000, 3_000])
def test_values_beyond_the_limit_leave_the_table_in_step(size: int, huffman: bool):
    ours, encoder = decoder(max_list=64 * 1024), reference.Encoder()
    ours.decode(encoder.encode([("kept", "value")]))
    block = encoder.encode([(f"x-{n}", chr(97 + n % 26) * size) for n in range(90_000 // size)], huffman=huffman)
    with pytest.raises(HeadersTooLarge):
        ours.decode(block + encoder.encode([("last", "one")]))
    assert ours.decode(encoder.encode([("last", "one"), ("kept", "value")])) == [("last", "one"), ("kept", "value")]


@pytest.mark.parametrize(
    "field", [b"\x00\x00\x00", b"\x40\x01a\x01b", b"\xff\x00", b"\x40\x01x\x7f\x81\x16" + b"v" * 2944]
)
def test_a_block_that_takes_long_ends_the_connection(field: bytes):
    """The decoder handles no more fields, and no more bytes, than a refused block may have."""
    ours = decoder(max_list=64 * 1024)
    ours.decode(b"\x40\x01x\x00" * 100)
    with pytest.raises(ConnectionFault) as caught:
        ours.decode(field * (128 * 1024 // len(field)))
    assert (caught.value.code, caught.value.reason) == (ENHANCE_YOUR_CALM, "header list size")


def test_an_entry_larger_than_the_table_empties_it():
    ours, encoder = decoder(), reference.Encoder()
    ours.decode(encoder.encode([("a", "b")]))
    ours.decode(encoder.encode([("big", "x" * 5000)]))
    with pytest.raises(ConnectionFault):
        ours.decode(b"\xbe")


def test_secrets_are_never_to_be_indexed():
    assert encode_header("authorization", "Bearer token")[0] & 0xF0 == 0x10
    assert encode_header("x-other", "value")[0] & 0xF0 == 0x00
    assert encode_header(":status", "200") == b"\x88"
