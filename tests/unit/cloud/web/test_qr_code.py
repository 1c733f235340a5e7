"""QR codes: a decoder that was written from the other side of the standard reads them, also when they are damaged."""

from __future__ import annotations

import pytest

from cloud.web.views.installing.qr_code import _penalty, matrix, svg

FORMATS = {
    "101010000010010": 0,
    "101000100100101": 1,
    "101111001111100": 2,
    "101101101001011": 3,
    "100010111111001": 4,
    "100000011001110": 5,
    "100111110010111": 6,
    "100101010100000": 7,
}
"""Format with error correction M by mask: table C.1 of the standard."""
VERSIONS = {7: "000111110010010100", 8: "001000010110111100", 12: "001100011101100010", 20: "010100100110100110"}
"""Version information: table D.1 of the standard."""
BLOCKS = {
    1: [(26, 16)],
    2: [(44, 28)],
    5: [(67, 43)] * 2,
    10: [(69, 43)] * 4 + [(70, 44)],
    20: [(67, 41)] * 3 + [(68, 42)] * 13,
}
"""Sizes of the blocks with error correction M (all and data bytes) by version: table 9 of the standard."""
CENTRES = {1: [], 2: [6, 18], 5: [6, 30], 10: [6, 28, 50], 20: [6, 34, 62, 90]}
"""Table E.1 of the standard."""


def version_of(rows: list[list[bool]]) -> int:
    return (len(rows) - 17) // 4


def is_function(version: int, row: int, column: int) -> bool:
    size = 17 + 4 * version
    if 6 in (row, column) or (row < 9 and (column < 9 or column >= size - 8)) or (row >= size - 8 and column < 9):
        return True
    if version >= 7 and ((row < 6 and column >= size - 11) or (column < 6 and row >= size - 11)):
        return True
    centres = CENTRES[version]
    for top in centres:
        for left in centres:
            corner = (top, left) in ((6, 6), (6, centres[-1]), (centres[-1], 6))
            if not corner and abs(row - top) <= 2 and abs(column - left) <= 2:
                return True
    return False


def masked(mask: int, i: int, j: int) -> bool:
    return (
        (i + j) % 2 == 0,
        i % 2 == 0,
        j % 3 == 0,
        (i + j) % 3 == 0,
        (i // 2 + j // 3) % 2 == 0,
        (i * j) % 2 + (i * j) % 3 == 0,
        ((i * j) % 2 + (i * j) % 3) % 2 == 0,
        ((i + j) % 2 + (i * j) % 3) % 2 == 0,
    )[mask]


def times(a: int, b: int) -> int:
    """Multiply in GF(256) bit by bit, without tables."""
    result = 0
    while b:
        if b & 1:
            result ^= a
        a <<= 1
        if a & 0x100:
            a ^= 0x11D
        b >>= 1
    return result


def syndromes(block: list[int], count: int) -> list[int]:
    results, root = [], 1
    for _ in range(count):
        value = 0
        for byte in block:
            value = times(value, root) ^ byte
        results.append(value)
        root = times(root, 2)
    return results


def decoded(rows: list[list[bool]]) -> bytes:
    """Read a code as a scanner does, with a check of its error correction."""
    size, version = len(rows), version_of(rows)
    bit = lambda row, column: "1" if rows[row][column] else "0"  # noqa: E731
    first = "".join(bit(8, at) for at in (0, 1, 2, 3, 4, 5, 7, 8)) + "".join(bit(at, 8) for at in (7, 5, 4, 3, 2, 1, 0))
    second = "".join(bit(size - 1 - at, 8) for at in range(7)) + "".join(bit(8, size - 8 + at) for at in range(8))
    assert first == second
    mask = FORMATS[first]
    bits, column, upwards = "", size - 1, True
    while column > 0:
        if column == 6:
            column -= 1
        for step in range(size):
            row = size - 1 - step if upwards else step
            for at in (column, column - 1):
                if not is_function(version, row, at):
                    bits += "1" if rows[row][at] != masked(mask, row, at) else "0"
        column, upwards = column - 2, not upwards
    stream = [int(bits[at : at + 8], 2) for at in range(0, len(bits) - len(bits) % 8, 8)]
    blocks: list[list[int]] = [[] for _ in BLOCKS[version]]
    for at in range(max(data for _, data in BLOCKS[version])):
        for block, (_, data) in zip(blocks, BLOCKS[version], strict=True):
            if at < data:
                block.append(stream.pop(0))
    contents = [list(block) for block in blocks]
    correction = BLOCKS[version][0][0] - BLOCKS[version][0][1]
    for _ in range(correction):
        for block in blocks:
            block.append(stream.pop(0))
    for block in blocks:
        assert syndromes(block, correction) == [0] * correction
    text = "".join(f"{byte:08b}" for block in contents for byte in block)
    assert text[:4] == "0100"
    width = 8 if version < 10 else 16
    length, begin = int(text[4 : 4 + width], 2), 4 + width
    return bytes(int(text[begin + 8 * at : begin + 8 * at + 8], 2) for at in range(length))


@pytest.mark.parametrize(("length", "version"), [(1, 1), (14, 1), (15, 2), (26, 2), (84, 5), (213, 10), (666, 20)])
def test_codes_are_read(length: int, version: int) -> None:
    content = bytes((7 * at + length) % 256 for at in range(length))
    rows = matrix(content)
    assert version_of(rows) == version
    assert decoded(rows) == content


@pytest.mark.parametrize("length", range(1, 27))
def test_every_mask_and_length_of_small_codes(length: int) -> None:
    content = b"https://cloud.example/machines"[:length]
    assert decoded(matrix(content)) == content


@pytest.mark.parametrize(("version", "length"), [(7, 107), (8, 123), (12, 252), (20, 640)])
def test_the_version_is_in_the_code_twice(version: int, length: int) -> None:
    rows = matrix(bytes(length))
    size = len(rows)
    assert version_of(rows) == version
    expected = VERSIONS[version]
    for turned in (False, True):
        places = [(size - 11 + at % 3, at // 3) for at in range(17, -1, -1)]
        read = "".join("1" if (rows[c][r] if turned else rows[r][c]) else "0" for r, c in places)
        assert read == expected


def test_finders_and_timing_are_where_scanners_look() -> None:
    rows = matrix(b"x")
    finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"]
    for top, left in ((0, 0), (0, 14), (14, 0)):
        assert ["".join("1" if dark else "0" for dark in rows[top + at][left : left + 7]) for at in range(7)] == finder
    assert [rows[6][at] for at in range(8, 13)] == [True, False, True, False, True]
    assert rows[13][8]


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="667 bytes are too many"):
        matrix(bytes(667))


def test_the_picture_has_a_margin_and_a_name() -> None:
    picture = svg("https://cloud.example/machines/1/install", "Link to this page")
    assert 'viewBox="0 0 37 37"' in picture
    assert 'aria-label="Link to this page"' in picture
    assert "M4 4h1" in picture


def test_the_penalty_of_a_code_without_and_with_a_dark_module() -> None:
    """By the rules of the standard (7.8.3.1) for 11 x 11 modules: runs, squares, share of dark modules."""
    light = [[False] * 11 for _ in range(11)]
    assert _penalty(light) == 22 * (11 - 2) + 3 * 100 + 10 * 10
    light[0][0] = True
    assert _penalty(light) == 20 * (11 - 2) + 2 * (10 - 2) + 3 * 99 + 10 * 9
