"""A byte stream over messages."""

from __future__ import annotations

import pytest
import trio

from rpc.http.message_stream import LARGEST, MessageStream


async def test_messages_as_bytes() -> None:
    received, sent, closed = [b"abc", b"de", b""], list[bytes](), list[bool]()

    async def receive() -> bytes:
        return received.pop(0)

    async def send(data: bytes) -> None:
        sent.append(data)

    async def close() -> None:
        closed.append(True)

    stream = MessageStream(receive, send, close)
    assert [await stream.receive_some(2) for _ in range(2)] == [b"ab", b"c"]
    assert [await stream.receive_some() for _ in range(2)] == [b"de", b""]
    await stream.send_all(b"")
    await stream.send_all(bytearray(LARGEST + 1))
    assert [len(data) for data in sent] == [LARGEST, 1]
    await stream.aclose()
    await stream.aclose()
    assert closed == [True]
    with pytest.raises(trio.ClosedResourceError):
        await stream.receive_some()
    with pytest.raises(trio.ClosedResourceError):
        await stream.send_all(b"x")
