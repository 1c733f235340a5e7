from __future__ import annotations

from typing import Any

import pytest
from hyperframe import frame as reference
from hypothesis import given
from hypothesis import strategies as st

from rpc.errors import ENHANCE_YOUR_CALM, FRAME_SIZE_ERROR, PROTOCOL_ERROR, ConnectionFault
from rpc.http2.codec import frames
from rpc.http2.codec.frame_reader import FrameReader
from rpc.limits import Limits

LIMITS = Limits(max_frame=16384)


class Recorder:
    """A sink that records its calls."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        assert name.startswith("on_")
        return lambda *args: self.events.append((name[3:], *args))


def read(data: bytes, limits: Limits = LIMITS) -> list[tuple[Any, ...]]:
    sink = Recorder()
    FrameReader(sink, limits).feed(data)
    return sink.events


def test_frames_written_by_another_implementation():
    settings = reference.SettingsFrame(0, settings={4: 70000, 5: 20000})
    headers = reference.HeadersFrame(
        3, data=b"block", pad_length=9, depends_on=1, stream_weight=4, flags=["END_HEADERS", "PADDED", "PRIORITY"]
    )
    data = reference.DataFrame(3, data=b"body", pad_length=7, flags=["END_STREAM", "PADDED"])
    others = [
        reference.PingFrame(0, opaque_data=b"12345678"),
        reference.WindowUpdateFrame(3, window_increment=5),
        reference.RstStreamFrame(3, error_code=8),
        reference.GoAwayFrame(0, last_stream_id=3, error_code=2, additional_data=b"why"),
        reference.PriorityFrame(5, depends_on=3),
        reference.SettingsFrame(0, flags=["ACK"]),
    ]
    assert read(b"".join(item.serialize() for item in (settings, headers, data, *others))) == [
        ("settings", [(4, 70000), (5, 20000)]),
        ("headers", 3, b"block", False),
        ("data", 3, b"body", 12, True),
        ("ping", b"12345678", False),
        ("window", 3, 5),
        ("reset", 3, 8),
        ("goaway", 3, 2, b"why"),
        ("glitch",),
        ("settings_ack",),
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (frames.settings([(4, 70000)]), reference.SettingsFrame),
        (frames.SETTINGS_ACK, reference.SettingsFrame),
        (frames.window_update(0, 12), reference.WindowUpdateFrame),
        (frames.rst_stream(3, 8), reference.RstStreamFrame),
        (frames.ping(b"12345678", ack=True), reference.PingFrame),
        (frames.goaway(7, 11, "calm"), reference.GoAwayFrame),
        (frames.frame(frames.DATA, 1, 3, b"x" * 70000), reference.DataFrame),
    ],
)
def test_frames_that_another_implementation_reads(written: bytes, expected: type):
    first, length = reference.Frame.parse_frame_header(memoryview(written[:9]))
    first.parse_body(memoryview(written[9:]))
    assert isinstance(first, expected)
    assert length == len(written) - 9
    assert first.serialize() == written


@given(st.lists(st.integers(1, 40), max_size=30))
def test_cuts_do_not_matter(cuts: list[int]):
    block = bytes(range(256)) * 100
    whole = (
        frames.headers(1, block, end=False, max_frame=16384)
        + frames.frame(frames.DATA, 0, 1, b"abc")
        + frames.ping(b"12345678", ack=False)
        + frames.frame(frames.DATA, 1, 1)
    )
    sink = Recorder()
    reader = FrameReader(sink, LIMITS)
    position = 0
    for cut in cuts:
        reader.feed(whole[position : position + cut])
        position += cut
    reader.feed(whole[position:])
    assert sink.events == [
        ("headers", 1, block, False),
        ("data", 1, b"abc", 3, False),
        ("ping", b"12345678", False),
        ("data", 1, b"", 0, True),
    ]


def bad(kind: int, flags: int, sid: int, payload: bytes = b"") -> bytes:
    return frames.frame(kind, flags, sid, payload)


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (frames.head(0, 0, 1, 16385), FRAME_SIZE_ERROR, "frame size"),  # refused by its header alone
        (bad(frames.DATA, 0, 0, b"x"), PROTOCOL_ERROR, "stream id"),
        (bad(frames.HEADERS, 4, 0, b"x"), PROTOCOL_ERROR, "stream id"),
        (bad(frames.RST_STREAM, 0, 0, b"\0\0\0\0"), PROTOCOL_ERROR, "stream id"),
        (bad(frames.PRIORITY, 0, 0, b"\0" * 5), PROTOCOL_ERROR, "stream id"),
        (bad(frames.CONTINUATION, 4, 0, b""), PROTOCOL_ERROR, "stream id"),
        (bad(frames.SETTINGS, 0, 1), PROTOCOL_ERROR, "stream id"),
        (bad(frames.PING, 0, 1, b"\0" * 8), PROTOCOL_ERROR, "stream id"),
        (bad(frames.GOAWAY, 0, 1, b"\0" * 8), PROTOCOL_ERROR, "stream id"),
        (bad(frames.PING, 0, 0, b"\0" * 7), FRAME_SIZE_ERROR, "frame size"),
        (bad(frames.RST_STREAM, 0, 1, b"\0" * 3), FRAME_SIZE_ERROR, "frame size"),
        (bad(frames.PRIORITY, 0, 1, b"\0" * 4), FRAME_SIZE_ERROR, "frame size"),
        (bad(frames.WINDOW_UPDATE, 0, 1, b"\0" * 5), FRAME_SIZE_ERROR, "frame size"),
        (bad(frames.GOAWAY, 0, 0, b"\0" * 7), FRAME_SIZE_ERROR, "frame size"),
        (bad(frames.SETTINGS, 0, 0, b"\0" * 5), FRAME_SIZE_ERROR, "frame size"),
        (bad(frames.SETTINGS, 1, 0, b"\0" * 6), FRAME_SIZE_ERROR, "frame size"),
        (bad(frames.SETTINGS, 0, 0, b"\0" * 6 * 33), ENHANCE_YOUR_CALM, "settings"),
        (bad(frames.WINDOW_UPDATE, 0, 1, b"\0" * 4), PROTOCOL_ERROR, "flow control"),
        (bad(frames.DATA, 8, 1), FRAME_SIZE_ERROR, "padding"),
        (bad(frames.DATA, 8, 1, b"\x02a"), PROTOCOL_ERROR, "padding"),
        (bad(frames.HEADERS, 4 | 8, 1, b"\x05abcd"), PROTOCOL_ERROR, "padding"),
        (bad(frames.HEADERS, 4 | 32, 1, b"\0\0\0\0"), FRAME_SIZE_ERROR, "frame size"),
        (bad(frames.HEADERS, 4 | 32, 1, b"\0\0\0\1\0"), PROTOCOL_ERROR, "frame format"),  # the stream depends on itself
        (bad(frames.PRIORITY, 0, 7, b"\0\0\0\7\0"), PROTOCOL_ERROR, "frame format"),
        (bad(frames.PUSH_PROMISE, 4, 1, b"\0\0\0\2"), PROTOCOL_ERROR, "frame format"),
        (bad(frames.CONTINUATION, 4, 1, b""), PROTOCOL_ERROR, "continuation"),
        (bad(frames.HEADERS, 0, 1, b"x") + bad(frames.DATA, 0, 1, b"x"), PROTOCOL_ERROR, "continuation"),
        (bad(frames.HEADERS, 0, 1, b"x") + bad(frames.CONTINUATION, 4, 3, b"x"), PROTOCOL_ERROR, "continuation"),
        (bad(frames.HEADERS, 0, 1) + bad(frames.CONTINUATION, 0, 1) * 9, ENHANCE_YOUR_CALM, "continuation"),
        (
            bad(frames.HEADERS, 0, 1, b"x" * 16384) + bad(frames.CONTINUATION, 0, 1, b"x" * 16384) * 8,
            ENHANCE_YOUR_CALM,
            "continuation",
        ),
    ],
)
def test_rules(data: bytes, code: int, reason: str):
    with pytest.raises(ConnectionFault) as caught:
        read(data)
    assert (caught.value.code, caught.value.reason) == (code, reason)


def test_values_at_the_limits_are_allowed():
    assert read(bad(frames.HEADERS, 0, 1) + bad(frames.CONTINUATION, 0, 1) * 7 + bad(frames.CONTINUATION, 4, 1))
    assert read(bad(frames.DATA, 8, 1, b"\x01a\0")) == [("data", 1, b"a", 3, False)]
    assert read(bad(frames.DATA, 8, 1, b"\x02\0\0")) == [("data", 1, b"", 3, False)]
    assert read(bad(0xFA, 0xFF, 0, b"grease")) == [("glitch",)]


@given(st.binary(max_size=200))
def test_only_the_documented_error(data: bytes):
    try:
        read(data)
    except ConnectionFault:
        pass
