"""What the process of a query may send: it may have been taken over by a query, so the cloud limits what it decodes."""

from __future__ import annotations

import pytest
from trio.testing import memory_stream_one_way_pair

from cloud.domain.queries.query_child import END, NEEDS, ROWS
from cloud.domain.queries.query_process import MAX_JSON, Frames


def frame(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4, "big") + content


async def received(sent: bytes, most: int = 10 * MAX_JSON) -> list[tuple[bytes, bytes]]:
    send, receive = memory_stream_one_way_pair()
    frames, result = Frames(receive, most), list[tuple[bytes, bytes]]()
    await send.send_all(sent)
    await send.aclose()
    while (following := await frames.following()) is not None:
        result.append(following)
    return result


async def test_frames_follow_each_other() -> None:
    assert await received(frame(NEEDS, b"{}") + frame(ROWS, b"x") + frame(END, b"")) == [
        (NEEDS, b"{}"),
        (ROWS, b"x"),
        (END, b""),
    ]


async def test_a_frame_that_is_cut_off_is_the_end() -> None:
    assert await received(frame(NEEDS, b"{}")[:-1]) == []


async def test_a_long_message_is_refused_before_it_arrives() -> None:
    assert await received(frame(ROWS, bytes(MAX_JSON)))
    with pytest.raises(RuntimeError, match="more than allowed"):
        await received(NEEDS + MAX_JSON.to_bytes(4, "big"))


async def test_all_frames_together_are_limited() -> None:
    with pytest.raises(RuntimeError, match="more than allowed"):
        await received(frame(ROWS, bytes(100)) * 3, most=300)
