"""Decoder for the Huffman code of RFC 7541 appendix B. Pure."""

from __future__ import annotations

from functools import cache
from typing import Final

from rpc.errors import COMPRESSION_ERROR, ConnectionFault

EOS: Final = 256

# Code length in bits of each symbol, EOS last. The code is canonical, so the lengths define it.
# fmt: off
LENGTHS: Final = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
    28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
    8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
    13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
    28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
    22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
    22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
    25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
)
# fmt: on

_CACHED_LENGTH: Final = 64  # bytes; names and short values repeat, longer strings are tokens and data
_CACHED_STRINGS: Final = 2048
_strings: dict[bytes, str] = {}


def codes() -> list[tuple[int, int]]:
    """Return the code and its number of bits for each symbol."""
    out = [(0, 0)] * len(LENGTHS)
    code = bits = 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(LENGTHS)):
        code <<= length - bits
        bits = length
        out[symbol] = (code, length)
        code += 1
    return out


@cache
def _table() -> tuple[list[tuple[int, int]], frozenset[int]]:
    """Return the transition table and the set of nodes in which a string may end.

    The entry at node * 16 + nibble is the next node and the decoded symbol, or -1. No code is shorter than five bits,
    so at most one symbol is decoded per nibble.
    """
    children: list[list[int]] = [[0, 0]]  # > 0: a node; < 0: -1 - symbol; 0: unset
    padding = {0}
    for symbol, (code, length) in enumerate(codes()):
        node = 0
        for shift in range(length - 1, 0, -1):
            bit = code >> shift & 1
            if not children[node][bit]:
                children.append([0, 0])
                children[node][bit] = len(children) - 1
            node = children[node][bit]
            if symbol == EOS and length - shift < 8:  # padding is fewer than eight bits of EOS
                padding.add(node)
        children[node][code & 1] = -1 - symbol
    steps = []
    for start in range(len(children)):
        for nibble in range(16):
            node, decoded = start, -1
            for shift in (3, 2, 1, 0):
                node = children[node][nibble >> shift & 1]
                if node < 0:
                    decoded, node = -1 - node, 0
            steps.append((node, decoded))
    return steps, frozenset(padding)


def decode(data: bytes) -> str:
    """Decode a Huffman-coded string as Latin-1. ConnectionFault if it contains EOS or its padding is invalid."""
    text = _strings.get(data)
    if text is not None:
        return text
    steps, padding = _table()
    out = bytearray()
    node = 0
    for byte in data:
        node, symbol = steps[node << 4 | byte >> 4]
        if symbol >= 0:
            if symbol == EOS:
                raise ConnectionFault(COMPRESSION_ERROR, "header block", "EOS in a Huffman string")
            out.append(symbol)
        node, symbol = steps[node << 4 | byte & 15]
        if symbol >= 0:
            if symbol == EOS:
                raise ConnectionFault(COMPRESSION_ERROR, "header block", "EOS in a Huffman string")
            out.append(symbol)
    if node not in padding:
        raise ConnectionFault(COMPRESSION_ERROR, "header block", "wrong padding of a Huffman string")
    text = out.decode("latin-1")
    if len(data) <= _CACHED_LENGTH:
        if len(_strings) >= _CACHED_STRINGS:
            _strings.clear()
        _strings[data] = text
    return text
