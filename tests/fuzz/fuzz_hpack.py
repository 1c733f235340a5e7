"""Fuzz the header blocks of one connection: `python -m tests.fuzz.fuzz_hpack [CORPUS]` with atheris installed."""

from __future__ import annotations

import sys

from rpc.errors import ConnectionFault, StreamFault
from rpc.http2.codec.hpack import Decoder, encode_headers

LIMIT = 2048

SEEDS = (
    b"\x06" + encode_headers([(":method", "GET"), ("a", "b")]),
    b"\x05\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",  # RFC 7541 C.4.1, Huffman
    b"\x20\x40\x0acustom-key\x0dcustom-header\xbe\xbe",
    b"\x03\x20\x82\x3f\xe1\x1f\x40\x01a\x01b",
)


def run_input(data: bytes) -> None:
    """Decode `data` in blocks whose length is its first byte. No input raises."""
    decoder = Decoder(table_size=256, max_list=LIMIT)
    step = max(1, data[0]) if data else 1
    for start in range(1, len(data), step):
        try:
            fields = decoder.decode(data[start : start + step])
        except ConnectionFault:
            return
        except StreamFault:
            continue
        assert sum(len(name) + len(value) + 32 for name, value in fields) <= LIMIT
        assert decoder._size <= decoder._max_size <= 256
        assert decoder._size == sum(len(name) + len(value) + 32 for name, value in decoder._dynamic)


def main() -> None:
    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, run_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
