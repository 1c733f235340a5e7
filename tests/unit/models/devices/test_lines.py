"""Splitting of bytes into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hal.lines import LONGEST_LINE, LineBuffer

TEXT = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\r", b"\n\n"]), max_size=30).map(b"".join)


def expected(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n")[:-1] if line not in (b"", b"\r")]


@given(TEXT, st.lists(st.integers(0, 60), max_size=8))
def test_lines_are_the_same_whatever_the_pieces(data: bytes, cuts: list[int]) -> None:
    buffer, lines, at = LineBuffer(), [], 0
    for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        lines += buffer.feed(data[at:cut])
        at = cut
    assert lines == expected(data)


@given(TEXT, st.integers(1, 5))
def test_the_first_line_is_dropped_when_its_beginning_was_missed(data: bytes, size: int) -> None:
    buffer, lines = LineBuffer(cut=True), []
    for at in range(0, len(data), size):
        lines += buffer.feed(data[at : at + size])
    assert lines == expected(data.partition(b"\n")[2])


def test_an_endless_line_is_dropped_and_the_next_one_kept() -> None:
    buffer = LineBuffer()
    for _ in range(3):
        assert buffer.feed(b"x" * LONGEST_LINE) == []
    assert buffer.feed(b"tail\ngood\n") == [b"good"]
    assert buffer.dropped == 1
