"""Scenes for test_conformance.py: a machine shows a camera over the connections of two engines, see `pairs.NAMES`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from rpc.api.client import ApiClient
from rpc.call import ServerCore
from rpc.carrier import Peer
from rpc.datachannel.client import CallChannel
from rpc.datachannel.server import serve_channel
from rpc.peers.media.negotiation import Negotiator
from runtime.parts.video.part import Video
from runtime.server.memory import open_machine
from schema.errors import ErrorKind, MachineError
from tests.netns.peers.pairs import NAMES, End, engines, interface, join, new_end, scene
from tests.netns.peers.viewers import let_media_in, listen, pitch_of, view

__all__ = ["interface"]
SERVICE = "proto.stream.v1.StreamService"
SIZE = {"width_px": 320, "height_px": 240, "animated": True}
DOCUMENT = {
    "components": [
        {"name": "cam", "api": "rdk:component:camera", "model": "fake", "attributes": SIZE},
        {"name": "ears", "api": "rdk:component:audio_in", "model": "fake", "attributes": {"tone_hz": 330}},
    ],
}
Connect = Callable[[], Awaitable[tuple[End, ApiClient]]]


@asynccontextmanager
async def machine() -> AsyncIterator[tuple[Video, Connect]]:
    """Yield the video part of a machine, and a function that connects one more client."""
    async with open_machine(DOCUMENT) as memory, engines(*NAMES) as (here, there), trio.open_nursery() as nursery:
        await memory.graph.settled()
        video = Video(memory.machine.part_context(memory.serving.router, {}, lambda: None))
        await nursery.start(video.run, {})
        core = ServerCore(memory.serving.router)

        async def serve(end: End) -> None:
            async with video.connection(end.peer, end.control) as streams:
                await serve_channel(end.data, core, peer=Peer(None, media=streams))

        async def call(end: End, *, task_status: trio.TaskStatus[ApiClient]) -> None:
            async with CallChannel(end.data) as channel:
                task_status.started(ApiClient(channel))
                await trio.sleep_forever()

        async def connect() -> tuple[End, ApiClient]:
            near, far = new_end(here), new_end(there)
            let_media_in(far.peer)
            await join(far, near)  # the client makes the first offer
            nursery.start_soon(serve, near)
            nursery.start_soon(Negotiator(far.peer, far.control).run)
            return far, await nursery.start(call, far)

        yield video, connect
        nursery.cancel_scope.cancel()


@scene
async def test_clients_see_a_camera_until_they_remove_it() -> None:
    async with machine() as (video, connect):
        clients = [await connect() for _ in range(2)]
        for end, client in clients:
            assert await client.call(SERVICE, "", "list_streams") == ["cam", "ears"]
            for _ in range(2):
                await client.call(SERVICE, "", "add_stream", name="cam")
                picture = await view(end.peer).next()
                assert (picture.width, picture.height) == (320, 240)
                await client.call(SERVICE, "", "remove_stream", name="cam")
            await client.call(SERVICE, "", "add_stream", name="cam")
        assert [len(source.viewers) for source in video.sources.values()] == [2]
        for _, client in clients:
            await client.call(SERVICE, "", "remove_stream", name="cam")
        assert video.sources == {}


@scene
async def test_clients_hear_a_microphone_until_they_remove_it() -> None:
    async with machine() as (video, connect):
        clients = [await connect() for _ in range(2)]
        for end, client in clients:
            await client.call(SERVICE, "", "add_stream", name="cam")
            await client.call(SERVICE, "", "add_stream", name="ears")
            await pitch_of(listen(end.peer), 330)
        assert sorted(len(source.viewers) for source in video.sources.values()) == [2, 2]
        for _, client in clients:
            for name in ("cam", "ears"):
                await client.call(SERVICE, "", "remove_stream", name=name)
        assert video.sources == {}


@scene
async def test_the_size_can_be_changed_while_it_is_shown() -> None:
    async with machine() as (_, connect):
        end, client = await connect()
        await client.call(SERVICE, "", "add_stream", name="cam")
        viewer = view(end.peer)
        await viewer.next()
        await client.call(SERVICE, "", "set_stream_options", name="cam", resolution={"width": 160, "height": 120})
        while (picture := await viewer.next()).width != 160:
            assert picture.width == 320
        assert picture.height == 120


@scene
async def test_a_client_that_leaves_ends_its_capture() -> None:
    async with machine() as (video, connect):
        (end, client), (_, other) = [await connect() for _ in range(2)]
        for calls in (client, other):
            await calls.call(SERVICE, "", "add_stream", name="cam")
        end.peer.close()
        await other.call(SERVICE, "", "remove_stream", name="cam")
        with trio.fail_after(30):
            while video.sources:
                await trio.lowlevel.checkpoint()


@scene
async def test_a_client_that_refuses_video_gets_an_error() -> None:
    async with machine() as (video, connect):
        end, client = await connect()
        del vars(end.peer)["_refuse_media"]
        call = partial(client.call, SERVICE, "", "add_stream", name="cam")
        with pytest.raises(MachineError) as caught:
            await call()
        assert caught.value.kind is ErrorKind.PRECONDITION
        assert video.sources == {}
