"""Lines of output: complete, bounded, whatever the program prints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.logs.entry import LEFT_OUT
from telemetry.logs.program_output import MAX_LINE, Lines


def all_of(*pieces: bytes) -> list[str]:
    lines = Lines()
    return [line for piece in pieces for line in lines.feed(piece)] + lines.rest()


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((b"a\nb\n",), ["a", "b"]),
        ((b"a", b"b\nc"), ["ab", "c"]),
        ((b"10 %\r20 %\r\n\n\n",), ["10 %", "20 %"]),
        ((b"\xff\n",), ["\N{REPLACEMENT CHARACTER}"]),
        ((b"x" * (MAX_LINE + 5), b"yyy", b"y\nz\n"), ["x" * MAX_LINE + "…", "z"]),
        ((b"x" * (MAX_LINE + 5) + b"\nz",), ["x" * MAX_LINE + "…", "z"]),
    ],
)
def test_lines(pieces: tuple[bytes, ...], expected: list[str]) -> None:
    assert all_of(*pieces) == expected


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=20), max_size=20), st.data())
def test_lines_are_the_same_however_they_arrive(lines: list[str], data: st.DataObject) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=5)))
    pieces = [content[start:end] for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    assert all_of(*pieces) == lines


def test_an_endless_line_takes_no_memory() -> None:
    lines = Lines()
    assert [len(line) for _ in range(1000) for line in lines.feed(b"x" * MAX_LINE)] == [MAX_LINE + 1]
    assert len(lines._partial) == 0


def test_the_longest_line_is_whole() -> None:
    (line,) = Lines().feed(b"x" * MAX_LINE + b"\n")
    assert line == "x" * MAX_LINE
    (longer,) = Lines().feed(b"x" * (MAX_LINE + 1) + b"\n")
    assert longer == "x" * MAX_LINE + LEFT_OUT
