"""Write micro/wire/hpack_tables.py: the static table and the Huffman code of HPACK, from those of rpc."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rpc.http2.codec.hpack import STATIC_TABLE
from rpc.http2.codec.huffman import codes

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "micro" / "wire" / "hpack_tables.py"

HEAD = '''"""Tables of HPACK (RFC 7541). Written by tools/gen_micro_hpack.py; `make generate` updates it. Pure."""

# ruff: noqa: E501
# fmt: off
'''
SHORT = 8  # bits of the codes that one look-up decodes


def page() -> str:
    """Return the text of the file."""
    table = list(enumerate(codes()))[:256]  # without EOS
    lengths, symbols = bytearray(1 << SHORT), bytearray(1 << SHORT)
    longer: dict[int, list[tuple[int, int]]] = {}
    for symbol, (code, length) in table:
        if length > SHORT:
            longer.setdefault(length, []).append((code, symbol))
            continue
        first = code << (SHORT - length)
        for entry in range(first, first + (1 << (SHORT - length))):
            lengths[entry], symbols[entry] = length, symbol
    rows, tail = [], bytearray()
    for length, members in sorted(longer.items()):
        members.sort()
        first = members[0][0]
        if [code for code, _ in members] != list(range(first, first + len(members))):
            raise AssertionError(f"the codes of {length} bits are not consecutive")
        rows.append((length, first, len(tail), len(members)))
        tail += bytes(symbol for _, symbol in members)
    static = [f"({name.encode()!r}, {value.encode()!r})" for name, value in STATIC_TABLE]
    return "\n".join(
        [
            HEAD,
            *_tuple("STATIC", static),
            "",
            "# Length and character of the code with which a byte begins; length 0: a longer code.",
            f"LENGTHS = {bytes(lengths)!r}",
            f"SYMBOLS = {bytes(symbols)!r}",
            "",
            f"# Codes of more than {SHORT} bits: length, first code, place in TAIL, number.",
            *_tuple("ROWS", map(str, rows)),
            f"TAIL = {bytes(tail)!r}",
            "",
        ]
    )


def _tuple(name: str, items: Iterable[str]) -> list[str]:
    return [f"{name} = (", *(f"    {item}," for item in items), ")"]
