"""Fuzz the frames of one connection: `python -m tests.fuzz.fuzz_frames [CORPUS]` with atheris installed."""

from __future__ import annotations

import sys

from rpc.errors import ConnectionFault, StreamFault
from rpc.http2.codec import frames
from rpc.http2.codec.frame_reader import FrameReader
from rpc.http2.codec.hpack import Decoder
from rpc.limits import Limits

LIMITS = Limits(max_frame=16384, max_header_list=4096)

SEEDS = (
    frames.settings([(4, 65535), (5, 16384)]) + frames.window_update(0, 1000),
    frames.headers(1, b"\x82\x86\x84\x41\x01x", end=True, max_frame=16384),
    frames.headers(1, b"\x82" * 40, end=False, max_frame=16) + frames.frame(frames.DATA, 9, 1, b"\x02abc\0\0"),
    frames.ping(b"12345678", ack=False) + frames.rst_stream(1, 8) + frames.goaway(1, 0, "bye"),
    frames.frame(frames.PRIORITY, 0, 3, b"\0\0\0\1\x10") + frames.frame(0xFA, 0xFF, 9, b"grease"),
)


class Sink:
    """Checks what the reader guarantees about its parts; decodes header blocks as a connection does."""

    def __init__(self) -> None:
        self.decoder = Decoder(table_size=LIMITS.header_table, max_list=LIMITS.max_header_list)

    def on_data(self, sid: int, data: bytes, flow: int, end: bool) -> None:
        assert 0 < sid <= frames.MAX_ID
        assert len(data) <= flow <= LIMITS.max_frame

    def on_headers(self, sid: int, block: bytes, end: bool) -> None:
        assert 0 < sid <= frames.MAX_ID
        try:
            fields = self.decoder.decode(block)
        except StreamFault:
            return
        assert sum(len(name) + len(value) + 32 for name, value in fields) <= LIMITS.max_header_list

    def on_reset(self, sid: int, code: int) -> None:
        assert sid

    def on_settings(self, pairs: list[tuple[int, int]]) -> None:
        assert len(pairs) <= LIMITS.max_settings

    def on_settings_ack(self) -> None:
        pass

    def on_ping(self, data: bytes, ack: bool) -> None:
        assert len(data) == 8

    def on_goaway(self, last: int, code: int, debug: bytes) -> None:
        assert last <= frames.MAX_ID

    def on_window(self, sid: int, n: int) -> None:
        assert 0 < n <= frames.MAX_WINDOW

    def on_glitch(self) -> None:
        pass


def run_input(data: bytes) -> None:
    """Read `data` in pieces whose size its first byte determines. No input raises."""
    reader = FrameReader(Sink(), LIMITS)
    step = max(1, data[0]) if data else 1
    try:
        for start in range(1, len(data), step):
            reader.feed(data[start : start + step])
    except ConnectionFault:
        pass


def main() -> None:
    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, run_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
