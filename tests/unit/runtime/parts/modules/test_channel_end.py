"""Closing a channel during calls ends them with UNAVAILABLE, and closing completes."""

from __future__ import annotations

import pytest
import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError
from trio.testing import memory_stream_pair

from rpc.call import ServerCore
from rpc.client.channel import Channel
from rpc.http2.server import serve_http2
from runtime.parts.modules.foreign import Raw


async def call(channel: Channel) -> None:
    async with channel.request("/a.B/C", Cardinality.UNARY_UNARY, Raw, Raw) as stream:
        await stream.send_message(Raw(b""), end=True)
        await stream.recv_message()


async def test_a_call_after_its_end(autojump_clock: object) -> None:
    async with Channel("unix:/nowhere", connect=trio.sleep_forever) as channel:
        pass
    with pytest.raises(GRPCError) as caught:
        await call(channel)
    assert caught.value.status is Status.UNAVAILABLE
    with pytest.raises(RuntimeError, match="async with"):
        await call(Channel("unix:/nowhere"))


async def test_closing_while_it_connects(autojump_clock: object) -> None:
    """A connection that succeeds after closing is dropped; otherwise leaving the channel would never end."""
    dialled, go_on = trio.Event(), trio.Event()
    near, far = memory_stream_pair()

    async def connect() -> trio.abc.Stream:
        dialled.set()
        await go_on.wait()
        return near

    refused: list[Status] = []

    async def late(channel: Channel) -> None:
        try:
            await call(channel)
        except GRPCError as error:
            refused.append(error.status)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_http2, far, ServerCore({}))
            async with Channel("unix:/nowhere", connect=connect) as channel:
                nursery.start_soon(late, channel)
                await dialled.wait()
            go_on.set()
    assert refused == [Status.UNAVAILABLE]
