"""StreamService over data channels in memory: who may see what, limits, and captures that viewers share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.parts.video import part, retry, source, streams
from runtime.parts.video.names import camera_of, stream_names
from runtime.parts.video.part import Video
from runtime.server.parts import KINDS
from schema.document.machine import MachineDocument
from schema.errors import ErrorKind, MachineError
from schema.names import API, ResourceName
from support.worker import Worker
from tests.unit.runtime.parts.video.viewers import (
    CAMERA,
    SERVICE,
    SIZE,
    ChangingCamera,
    Client,
    document,
    jpeg,
    scene,
)


async def fails(kind: ErrorKind, call: Any, word: str = "") -> None:
    with pytest.raises(MachineError) as caught:
        await call
    assert caught.value.kind is kind, caught.value
    assert word in str(caught.value)


async def test_viewers_share_one_capture_and_the_last_one_ends_it() -> None:
    async with scene("cam") as here:
        clients = [await here.client() for _ in range(3)]
        with trio.fail_after(10):
            async with trio.open_nursery() as here.video._nursery:  # ends with the source
                for client in clients:
                    await client.call("add_stream", name="cam")
                assert here.tasks == 1
                await clients[0].track.next()
                for _ in range(5):
                    newest = await clients[2].track.next()
                assert any(frame is newest for frame in clients[0].track.frames)
                assert len(clients[0].track.frames) <= ChangingCamera.calls
                assert clients[0].track.stream == "cam"
                for others, client in zip((2, 1, 0), clients, strict=True):
                    await client.call("remove_stream", name="cam")
                    assert client.track.closed
                    assert len(here.video.sources) == (others > 0)


async def test_a_new_viewer_gets_a_picture_that_does_not_change() -> None:
    async with scene("cam") as here:
        ChangingCamera.changing = False
        clients = [await here.client() for _ in range(2)]
        for client in clients:
            await client.call("add_stream", name="cam")
            assert await client.track.luma() > 90
            await ChangingCamera.called(3)
        assert [len(client.track.frames) for client in clients] == [1, 1]


async def test_a_picture_that_does_not_change_is_sent_again_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "UNCHANGED", 0.1)
    async with scene("cam") as here:
        ChangingCamera.changing = False
        client = await here.client()
        await client.call("add_stream", name="cam")
        for _ in range(3):
            await client.track.next()


async def test_a_connection_that_ends_has_no_viewers() -> None:
    async with scene("cam", "other") as here:
        client, stays = await here.client(), await here.client()
        for name in ("cam", "other"):
            await client.call("add_stream", name=name)
        await stays.call("add_stream", name="cam")
        client.scope.cancel()
        await wait_all_tasks_blocked()
        assert list(here.video.sources) == [f"{CAMERA}/cam"]
        assert all(track.closed for track in client.peer.tracks)
        assert not stays.track.closed


async def test_streams_are_listed() -> None:
    async with scene("front", "back") as here:
        client = await here.client()
        assert await client.call("list_streams") == ["back", "ears", "front"]


async def test_calls_over_other_connections_are_refused_with_the_remedy() -> None:
    async with scene("cam") as here:
        client = here.memory.client()
        assert await client.call(SERVICE, "", "list_streams") == ["cam", "ears"]
        for method, arguments in (
            ("add_stream", {}),
            ("remove_stream", {}),
            ("get_stream_options", {}),
            ("set_stream_options", {"resolution": {"width": 64, "height": 48}}),
        ):
            call = client.call(SERVICE, "", method, name="cam", **arguments)
            await fails(ErrorKind.PRECONDITION, call, "connect through the cloud")


async def test_wrong_names_are_refused() -> None:
    async with scene("cam") as here:
        client = await here.client()
        await fails(ErrorKind.NOT_FOUND, client.call("add_stream", name="can"), "cam")
        await fails(ErrorKind.NOT_FOUND, client.call("add_stream", name="s"), "cam")
        await fails(ErrorKind.NOT_FOUND, client.call("add_stream", name=""), "cam")
        for method in ("get_stream_options", "set_stream_options"):
            await fails(ErrorKind.UNSUPPORTED, client.call(method, name="ears"), "microphone")
        await fails(ErrorKind.PRECONDITION, client.call("remove_stream", name="cam"), "active are: none")
        await client.call("add_stream", name="cam")
        await fails(ErrorKind.PRECONDITION, client.call("add_stream", name="cam"), "active already")
        assert len(client.peer.tracks) == 1


async def test_a_client_that_takes_no_video_starts_no_capture() -> None:
    async with scene("cam") as here:
        client = await here.client(takes=False)
        for _ in range(2):
            await fails(ErrorKind.PRECONDITION, client.call("add_stream", name="cam"), "VP8")
            assert client.track.closed
        assert (here.tasks, ChangingCamera.calls) == (0, 0)


async def test_a_client_that_does_not_answer_starts_no_capture(autojump_clock: MockClock) -> None:
    async with scene("cam") as here:
        client = await here.client(answers=False)
        begin = trio.current_time()
        await fails(ErrorKind.TIMEOUT, client.call("add_stream", name="cam"))
        assert trio.current_time() == begin + streams.NEGOTIATION_LIMIT
        assert client.track.closed
        assert (here.tasks, ChangingCamera.calls) == (0, 0)


async def test_a_call_that_is_cancelled_leaves_no_stream() -> None:
    async with scene("cam") as here:
        client = await here.client(answers=False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(client.call, "add_stream", name="cam"))
            await wait_all_tasks_blocked()
            await fails(ErrorKind.PRECONDITION, client.call("add_stream", name="cam"), "active already")
            nursery.cancel_scope.cancel()
        await wait_all_tasks_blocked()
        assert client.track.closed
        await fails(ErrorKind.PRECONDITION, client.call("remove_stream", name="cam"), "not active")


async def test_videos_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "MAX_VIEWERS", 2)
    async with scene("cam", "other") as here:
        clients = [await here.client() for _ in range(2)]
        await clients[0].call("add_stream", name="cam")
        await clients[1].call("add_stream", name="other")
        await fails(ErrorKind.EXHAUSTED, clients[1].call("add_stream", name="cam"), "2 videos")
        assert len(clients[1].peer.tracks) == 1
        await clients[0].call("remove_stream", name="cam")
        await clients[1].call("add_stream", name="cam")


async def flood(client: Client) -> None:
    while True:
        await client.call("add_stream", name="cam")
        await client.call("remove_stream", name="cam")


async def test_a_flood_of_changes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "RATE", 0.001)
    async with scene("cam") as here:
        client, other = await here.client(), await here.client()
        await fails(ErrorKind.EXHAUSTED, flood(client), "too often")
        assert len(client.peer.tracks) <= streams.BURST // 2
        await other.call("add_stream", name="cam")


async def test_the_size_is_that_of_all_viewers() -> None:
    async with scene("cam") as here:
        clients = [await here.client() for _ in range(2)]
        expected = [(64, 48), (32, 24), (16, 16)]
        options = await clients[0].call("get_stream_options", name="cam")
        assert [(option["width"], option["height"]) for option in options] == expected
        assert here.tasks == 0
        for client in clients:
            await client.call("add_stream", name="cam")
            assert (await client.track.next()).width == SIZE[0]
        assert await clients[1].call("get_stream_options", name="cam") == options
        await clients[0].call("set_stream_options", name="cam", resolution={"width": 32, "height": 30})
        for client in clients:
            while (frame := await client.track.next()).width != 32:
                assert frame.width == SIZE[0]
            assert frame.height == 30
        await clients[1].call("set_stream_options", name="cam")
        while (await clients[0].track.next()).width != SIZE[0]:
            pass


@pytest.mark.parametrize("size", [(0, 0), (63, 48), (64, 47), (14, 48), (64, 1922), (-64, 48)])
async def test_wrong_sizes_are_refused(size: tuple[int, int]) -> None:
    async with scene("cam") as here:
        client = await here.client()
        wrong = {"width": size[0], "height": size[1]}
        await fails(ErrorKind.INVALID, client.call("set_stream_options", name="cam", resolution=wrong))


async def test_sizes_of_cameras_that_are_gone_are_forgotten() -> None:
    async with scene("cam", "other") as here:
        client = await here.client()
        for names in (("cam", "other"), ("cam",)):
            here.memory.write(document(*names))
            await wait_all_tasks_blocked()
            await here.memory.graph.settled()
            await client.call("set_stream_options", name=names[-1], resolution={"width": 32, "height": 30})
        assert list(here.video._sizes) == [f"{CAMERA}/cam"]


async def test_viewers_see_why_a_camera_has_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "NOTICE_AFTER", 0.0)
    monkeypatch.setattr(retry, "FIRST_DELAY", 0.01)
    async with scene("cam") as here:
        ChangingCamera.changing = False
        client = await here.client()
        await client.call("add_stream", name="cam")
        await client.track.luma(over=90)
        for error in (MachineError("the lens is covered"), ValueError("a bug"), ExceptionGroup("x", [OSError()])):
            ChangingCamera.error = error
            await client.track.luma(under=60)
            ChangingCamera.error = None
            await client.track.luma(over=90)
        assert [kind for kind, _ in here.log.events] == ["warning", "info"] * 3


async def test_a_broken_picture_is_an_error_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY", 0.01)
    async with scene("cam") as here:
        monkeypatch.setattr("tests.unit.runtime.parts.video.viewers.jpeg", lambda *_: b"no picture")
        client = await here.client()
        await client.call("add_stream", name="cam")
        await client.track.luma(under=60)
        await fails(ErrorKind.INVALID, client.call("get_stream_options", name="cam"), "cannot be shown")
        monkeypatch.setattr("tests.unit.runtime.parts.video.viewers.jpeg", jpeg)
        await client.track.luma(over=90)


async def test_a_camera_may_go_and_come_back_while_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "NOTICE_AFTER", 0.0)
    monkeypatch.setattr(retry, "FIRST_DELAY", 0.01)
    async with scene("cam") as here:
        client = await here.client()
        await client.call("add_stream", name="cam")
        await client.track.luma(over=90)
        here.memory.write(document())
        await client.track.luma(under=60)
        await fails(ErrorKind.NOT_FOUND, client.call("get_stream_options", name="cam"))
        here.memory.write(document("cam"))
        await client.track.luma(over=90)
        await client.call("remove_stream", name="cam")


async def test_a_camera_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(source, "CAPTURE_LIMIT", 0.05)
    async with scene("cam") as here:
        monkeypatch.setattr(ChangingCamera, "get_images", hang)
        client = await here.client()
        await client.call("add_stream", name="cam")
        await client.track.luma(under=60)
        await fails(ErrorKind.TIMEOUT, client.call("get_stream_options", name="cam"), "no picture")


async def test_delays_between_attempts_grow(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def here_and_now(_worker: Worker, function: Callable[[], Any]) -> Any:
        return function()

    monkeypatch.setattr(Worker, "run", here_and_now)  # the clock would jump while a thread works
    async with scene("cam") as here:
        times: list[float] = []

        async def refuse(*_: Any) -> None:
            times.append(trio.current_time())
            raise MachineError("no")

        monkeypatch.setattr(source, "take", refuse)
        client = await here.client()
        await client.call("add_stream", name="cam")
        await trio.sleep(30)
        delays = [round(after - before, 3) for before, after in pairwise(times)]
        assert delays[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


async def test_without_its_node_there_is_no_video() -> None:
    async with scene("cam") as here:
        client = await here.client()
        here.video._nursery = None
        await fails(ErrorKind.UNAVAILABLE, client.call("add_stream", name="cam"))
        assert client.peer.tracks == []


class FakeRoster:
    """Has one camera, of a remote."""

    name = ResourceName.parse(f"{CAMERA}/far:cam")

    def __init__(self) -> None:
        self.hosts = {str(self.name): self}

    def hosts_of(self, api: API) -> list[ResourceName]:
        return [self.name] if self.name.api == api else []

    def find(self, full: str) -> FakeRoster:
        if full not in self.hosts:
            raise MachineError("no such resource", kind=ErrorKind.NOT_FOUND)
        return self


def test_streams_of_remotes_have_names_without_colons() -> None:
    roster: Any = FakeRoster()
    assert stream_names(roster) == ["far+cam"]
    for name in ("far+cam", "far:cam"):
        assert camera_of(roster, name) == FakeRoster.name
    with pytest.raises(MachineError) as caught:
        camera_of(roster, "far+can")
    assert "far+cam" in str(caught.value)


async def test_machines_with_webrtc_have_the_part_before_that_of_the_connections() -> None:
    document = MachineDocument()
    kinds = list(KINDS)
    assert kinds.index("video") < kinds.index("webrtc") < kinds.index("cloud")  # each asks for the one before
    assert [KINDS["video"].needed(document, SimpleNamespace(webrtc=webrtc)) for webrtc in (False, True)] == [
        False,
        True,
    ]
    async with scene() as here:
        (node,) = here.video.nodes(document)
        assert (node.name, node.run) == ("internal/video", here.video.run)
        assert KINDS["video"].path == f"{Video.__module__}:{Video.__qualname__}"
