from __future__ import annotations

import hpack as reference
import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hypothesis import given
from hypothesis import strategies as st

from micro.wire.faults import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, WireFault
from micro.wire.hpack import KEPT, Decoder, encode, huffman
from micro.wire.hpack_tables import STATIC

VALUES = st.binary(max_size=60)
NAMES = st.one_of(
    st.sampled_from([name for name, _ in STATIC] + list(KEPT)), st.text("abc-", min_size=1, max_size=9).map(str.encode)
)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=12)


def decoder(table: int = 4096, most: int = 1 << 20) -> Decoder:
    return Decoder(table, most)


def kept(fields: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    return {name: value for name, value in reversed(fields) if name in KEPT}


@given(st.lists(st.tuples(FIELDS, st.booleans()), max_size=8), st.sampled_from([0, 64, 200, 4096]))
def test_reads_the_kept_fields_that_the_reference_encoder_writes(blocks, size):
    encoder, ours = reference.Encoder(), decoder()
    encoder.header_table_size = size
    for fields, compress in blocks:
        assert ours.decode(encoder.encode(fields, huffman=compress)) == kept(fields)


@given(FIELDS)
def test_the_reference_decoder_reads_our_fields(fields):
    block = bytearray()
    for name, value in fields:
        encode(block, name, value)
    assert [tuple(field) for field in reference.Decoder().decode(bytes(block), raw=True)] == fields


@given(st.lists(st.binary(max_size=80), min_size=1, max_size=4))
def test_noise_is_refused_or_read_like_the_reference(blocks):
    ours, theirs = decoder(), reference.Decoder(max_header_list_size=1 << 20)
    for block in blocks:
        try:
            expected = [(bytes(name), bytes(value)) for name, value in theirs.decode(block, raw=True)]
        except Exception:  # the reference also raises errors outside its own hierarchy
            with pytest.raises(WireFault):
                ours.decode(block)
            return
        try:
            read = ours.decode(block)
            text = ""
        except WireFault as fault:
            read, text = {}, fault.text
        if text:
            assert "integer" in text or "table size" in text  # ours is stricter
            return
        assert read == kept(expected)


@given(st.binary(max_size=100))
def test_huffman_round_trip(data):
    assert huffman(HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(data), 100) == data


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xff\xff\xff", id="EOS"),
        pytest.param(b"\x1f\xff", id="a whole byte of padding"),
        pytest.param(b"\x18", id="padding of zeros"),
        pytest.param(b"\xff\xfe", id="half a long code"),
    ],
)
def test_huffman_codes_need_valid_padding(data):
    with pytest.raises(WireFault) as caught:
        huffman(data, 100)
    assert caught.value.code == COMPRESSION_ERROR


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (b"\x80", "no entry"),
        (b"\xbe", "no entry"),
        (b"\xff\xff\xff\xff\xff\xff\x7f", "integer"),
        (b"\x3f\xe2\x1f", "table size"),  # size 4097
        (b"\x82\x20", "follows a header field"),
        (b"\x00\x05abc", "cut off"),
        (b"\x40", "cut off"),
        (b"\x00\x01a", "cut off"),
    ],
)
def test_errors_end_the_connection(block, text):
    with pytest.raises(WireFault, match=text) as caught:
        decoder().decode(block)
    assert caught.value.code == COMPRESSION_ERROR


@pytest.mark.parametrize("compress", [False, True])
def test_lists_above_the_limit_end_the_connection(compress):
    for fields in ([(b"x", b"y" * 980)], [(b"x", b"")] * 40, [(b"bomb", b"x" * 500), (b"bomb", b"x" * 500)]):
        with pytest.raises(WireFault) as caught:
            decoder(most=1000).decode(reference.Encoder().encode(fields, huffman=compress))
        assert caught.value.code == ENHANCE_YOUR_CALM


def test_indexed_bombs_do_not_grow():
    encoder, ours = reference.Encoder(), decoder(most=8192)
    ours.decode(encoder.encode([(b"bomb", b"x" * 3900)]))
    with pytest.raises(WireFault, match="too long"):
        ours.decode(b"\xbe" * 4000)


def test_the_table_keeps_no_values_that_are_not_read():
    encoder, ours = reference.Encoder(), decoder()
    ours.decode(encoder.encode([(b"user-agent", b"x" * 500), (b"authorization", b"Bearer t")]))
    assert [(name, value) for name, value, _, _ in ours._table] == [(b"authorization", b"Bearer t"), (b"", b"")]
    assert ours._size == (10 + 500 + 32) + (13 + 8 + 32)


def test_entries_larger_than_the_table_empty_it():
    encoder, ours = reference.Encoder(), decoder()
    ours.decode(encoder.encode([(b"a", b"b")]))
    ours.decode(encoder.encode([(b"authorization", b"x" * 5000)]))
    assert ours._table == []
