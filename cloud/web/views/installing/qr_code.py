"""QR codes (ISO/IEC 18004) of texts, as SVG: byte mode, error correction M, versions 1 to 20. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

Matrix = list[list[bool]]
"""Rows of modules; True is dark."""

QUIET: Final = 4  # modules of the margin

_BLOCKS: Final = (
    *((10, 1, 16), (16, 1, 28), (26, 1, 44), (18, 2, 32), (24, 2, 43), (16, 4, 27), (18, 4, 31), (22, 4, 38)),
    *((22, 5, 36), (26, 5, 43), (30, 5, 50), (22, 8, 36), (22, 9, 37), (24, 9, 40), (24, 10, 41), (28, 10, 45)),
    *((28, 11, 46), (26, 13, 43), (26, 14, 44), (26, 16, 41)),
)
"""For each version with error correction M: bytes of correction in a block, blocks, and data bytes of a short block."""

_TOTAL: Final = (*(26, 44, 70, 100, 134, 172, 196, 242, 292, 346, 404, 466, 532, 581, 655, 733, 815, 901, 991, 1085),)
"""Bytes of each version."""

_ALIGNMENT: Final = (
    *((), (18,), (22,), (26,), (30,), (34,), (22, 38), (24, 42), (26, 46), (28, 50), (30, 54), (32, 58), (34, 62)),
    *((26, 46, 66), (26, 48, 70), (26, 50, 74), (30, 54, 78), (30, 56, 82), (30, 58, 86), (34, 62, 90)),
)
"""Centres of the alignment patterns of each version, without the first one, which is 6."""

_MASKS: Final[tuple[Callable[[int, int], bool], ...]] = (
    lambda row, column: (row + column) % 2 == 0,
    lambda row, column: row % 2 == 0,
    lambda row, column: column % 3 == 0,
    lambda row, column: (row + column) % 3 == 0,
    lambda row, column: (row // 2 + column // 3) % 2 == 0,
    lambda row, column: row * column % 2 + row * column % 3 == 0,
    lambda row, column: (row * column % 2 + row * column % 3) % 2 == 0,
    lambda row, column: ((row + column) % 2 + row * column % 3) % 2 == 0,
)


def svg(text: str, label: str) -> str:
    """Return the QR code of a text as an SVG element with a label, which must need no escaping.

    ValueError for a text that is too long: 666 bytes are possible.
    """
    rows = matrix(text.encode())
    size = len(rows) + 2 * QUIET
    path = "".join(
        f"M{column + QUIET} {row + QUIET}h1v1h-1z"
        for row, line in enumerate(rows)
        for column, dark in enumerate(line)
        if dark
    )
    return (
        f'<svg class="qr" viewBox="0 0 {size} {size}" role="img" aria-label="{label}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{path}" fill="#000"/></svg>'
    )


def matrix(content: bytes) -> Matrix:
    """Return the modules of the smallest code for some bytes. ValueError if there are too many."""
    version = next((number for number in range(1, 21) if len(content) + _overhead(number) <= _capacity(number)), 0)
    if not version:
        raise ValueError(f"{len(content)} bytes are too many for a QR code: shorten the text")
    modules, fixed = _frame(version)
    _place(modules, fixed, _interleaved(_padded(content, version), version))
    candidates = [_masked(modules, fixed, number, version) for number in range(8)]
    return min(candidates, key=_penalty)


def _overhead(version: int) -> int:
    """Return the bytes of mode and length; with them, the content is half a byte out of step."""
    return 2 if version < 10 else 3


def _capacity(version: int) -> int:
    correction, blocks, _ = _BLOCKS[version - 1]
    return _TOTAL[version - 1] - correction * blocks


def _padded(content: bytes, version: int) -> bytes:
    """Return the data bytes: mode, length, content, end, and padding."""
    bits = 8 if version < 10 else 16
    number = (0b0100 << bits | len(content)) << 8 * len(content) | int.from_bytes(content, "big")
    data = (number << 4).to_bytes(len(content) + _overhead(version), "big")  # with four bits for the end
    padding = bytes((0xEC, 0x11)) * _capacity(version)
    return (data + padding)[: _capacity(version)]


# ---- error correction


@cache
def _tables() -> tuple[list[int], list[int]]:
    """Return exponents and logarithms of the field with 256 elements."""
    exponents, logarithms, value = [0] * 510, [0] * 256, 1
    for power in range(255):
        exponents[power] = exponents[power + 255] = value
        logarithms[value] = power
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    return exponents, logarithms


def _product(first: int, second: int) -> int:
    exponents, logarithms = _tables()
    return exponents[logarithms[first] + logarithms[second]] if first and second else 0


def _correction(data: bytes, count: int) -> bytes:
    """Return the bytes of the Reed-Solomon code."""
    generator = [1]
    for power in range(count):
        root, shifted = _tables()[0][power], [*generator, 0]
        generator = [
            coefficient ^ _product(before, root) for coefficient, before in zip(shifted, [0, *generator], strict=True)
        ]
    rest = [0] * count
    for byte in data:
        factor = byte ^ rest[0]
        rest = [left ^ _product(right, factor) for left, right in zip([*rest[1:], 0], generator[1:], strict=True)]
    return bytes(rest)


def _interleaved(data: bytes, version: int) -> bytes:
    """Return data and error correction in the order in which they are placed."""
    correction, count, short = _BLOCKS[version - 1]
    longer = len(data) - count * short  # the last blocks have a byte more
    blocks, start = [], 0
    for number in range(count):
        size = short + (number >= count - longer)
        blocks.append(data[start : start + size])
        start += size
    codes = [_correction(block, correction) for block in blocks]
    mixed = [block[at] for at in range(short + 1) for block in blocks if at < len(block)]
    return bytes(mixed + [code[at] for at in range(correction) for code in codes])


# ---- modules


def _frame(version: int) -> tuple[Matrix, Matrix]:
    """Return the fixed patterns, and which modules they use."""
    size = 17 + 4 * version
    modules = [[False] * size for _ in range(size)]
    fixed = [[False] * size for _ in range(size)]

    def put(row: int, column: int, dark: bool) -> None:
        if 0 <= row < size and 0 <= column < size:
            modules[row][column], fixed[row][column] = dark, True

    for at in range(size):
        put(6, at, at % 2 == 0)
        put(at, 6, at % 2 == 0)
    for top, left in ((0, 0), (0, size - 7), (size - 7, 0)):
        for row in range(-1, 8):
            for column in range(-1, 8):
                distance = max(abs(row - 3), abs(column - 3))
                put(top + row, left + column, distance not in (2, 4))
    centres = (6, *_ALIGNMENT[version - 1])
    corners = ((6, 6), (6, size - 7), (size - 7, 6))
    for top in centres:
        for left in centres:
            if (top, left) not in corners:
                for row in range(-2, 3):
                    for column in range(-2, 3):
                        put(top + row, left + column, max(abs(row), abs(column)) != 1)
    for row, column in (*_format_places(size)[0], *_format_places(size)[1]):
        put(row, column, False)
    put(size - 8, 8, True)
    if version >= 7:
        bits = version << 12 | _remainder(version << 12, 0x1F25)
        for at in range(18):
            dark = bool(bits >> at & 1)
            put(size - 11 + at % 3, at // 3, dark)
            put(at // 3, size - 11 + at % 3, dark)
    return modules, fixed


def _format_places(size: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the places of both copies of the format, the lowest bit first."""
    first = [(at, 8) for at in (0, 1, 2, 3, 4, 5, 7, 8)] + [(8, at) for at in (7, 5, 4, 3, 2, 1, 0)]
    second = [(8, size - 1 - at) for at in range(8)] + [(size - 7 + at, 8) for at in range(7)]
    return first, second


def _remainder(value: int, divisor: int) -> int:
    """Return the remainder of polynomials with binary coefficients."""
    while value.bit_length() >= divisor.bit_length():
        value ^= divisor << value.bit_length() - divisor.bit_length()
    return value


def _path(size: int) -> Iterator[tuple[int, int]]:
    """Yield all modules in the order of the data: columns in pairs from the right, up and down."""
    upwards = True
    for right in [*range(size - 1, 6, -2), *range(5, 0, -2)]:
        for row in range(size - 1, -1, -1) if upwards else range(size):
            yield row, right
            yield row, right - 1
        upwards = not upwards


def _place(modules: Matrix, fixed: Matrix, content: bytes) -> None:
    bits = (bool(byte >> at & 1) for byte in content for at in range(7, -1, -1))
    for row, column in _path(len(modules)):
        if not fixed[row][column]:
            modules[row][column] = next(bits, False)


def _masked(modules: Matrix, fixed: Matrix, mask: int, version: int) -> Matrix:
    """Return the modules with a mask and the format that names it."""
    rule = _MASKS[mask]
    rows = [
        [dark ^ (not fixed[row][column] and rule(row, column)) for column, dark in enumerate(line)]
        for row, line in enumerate(modules)
    ]
    bits = (mask << 10 | _remainder(mask << 10, 0x537)) ^ 0x5412  # 00: error correction M
    for places in _format_places(17 + 4 * version):
        for at, (row, column) in enumerate(places):
            rows[row][column] = bool(bits >> at & 1)
    return rows


def _penalty(rows: Matrix) -> int:
    """Return how hard a code is to read: long runs, squares, false finders, and an unequal number of dark modules."""
    size, total = len(rows), 0
    for line in (*rows, *(list(column) for column in zip(*rows, strict=True))):
        text = "".join("1" if dark else "0" for dark in line)
        for run in text.replace("01", "0 1").replace("10", "1 0").split():
            total += len(run) - 2 if len(run) >= 5 else 0
        total += 40 * sum(text.startswith(("10111010000", "00001011101"), at) for at in range(size - 10))
    for row in range(size - 1):
        for column in range(size - 1):
            if rows[row][column] == rows[row][column + 1] == rows[row + 1][column] == rows[row + 1][column + 1]:
                total += 3
    dark = sum(map(sum, rows))
    return total + 10 * (abs(20 * dark - 10 * size * size) // (size * size))
