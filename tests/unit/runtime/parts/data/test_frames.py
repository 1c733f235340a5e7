"""Messages with their length in front of them."""

from __future__ import annotations

import pytest

from runtime.parts.data.files.frames import framed, frames


@pytest.mark.parametrize(("size", "head"), [(1, 1), (127, 1), (128, 2), (16383, 2), (16384, 3)])
def test_the_length_has_as_few_bytes_as_possible(size: int, head: int) -> None:
    message = b"x" * size
    assert len(framed(message)) == head + size
    assert list(frames(framed(message))) == [(head + size, message)]
