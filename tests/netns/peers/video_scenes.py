"""Scenes for test_conformance.py: outgoing video and its negotiation between two engines, see `pairs.NAMES`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from rpc.peers.media.negotiation import Negotiator
from rpc.peers.port import MAX_TRACKS, Description, VideoFrame, VideoTrack
from schema.errors import ErrorKind, MachineError
from tests.netns.peers.pairs import NAMES, End, engines, interface, join, new_end, scene
from tests.netns.peers.viewers import Viewer, let_media_in, view
from tests.unit.rpc.peers.contract import raises

__all__ = ["interface"]
WIDTH, HEIGHT = 328, 242  # rows that PyAV pads
NEAR = 12  # levels by which an encoder may change a picture


def grey(level: int, width: int = WIDTH, height: int = HEIGHT) -> VideoFrame:
    return VideoFrame(width, height, bytes([level]) * (width * height) + b"\x80" * (width * height // 2))


@asynccontextmanager
async def negotiating(*, taking: bool = True) -> AsyncIterator[tuple[End, End, list[Negotiator]]]:
    """Yield two connected ends and their negotiators; the second one receives video if `taking`."""
    async with engines(*NAMES) as (first, second), trio.open_nursery() as nursery:
        ends = new_end(first), new_end(second)
        if taking:
            let_media_in(ends[1].peer)
        await join(*ends)
        negotiators = [Negotiator(end.peer, end.control) for end in ends]
        for negotiator in negotiators:
            nursery.start_soon(negotiator.run)
        yield *ends, negotiators
        nursery.cancel_scope.cancel()


async def feed(track: VideoTrack, level: int) -> None:
    """Send the same picture again and again."""
    while True:
        track.send(grey(level))
        await trio.sleep(0.02)


async def shown(viewer: Viewer, level: int) -> None:
    """Wait until a viewer shows a picture of this level."""
    while True:
        picture = await viewer.next()
        if abs(picture.level(0.5, 0.5) - level) <= NEAR:
            assert (picture.width, picture.height) == (WIDTH, HEIGHT)
            assert abs(picture.level(0.99, 0.99) - level) <= NEAR
            return


async def see(track: VideoTrack, viewer: Viewer, level: int) -> None:
    """Check that a picture that is sent arrives."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed, track, level)
        await shown(viewer, level)
        nursery.cancel_scope.cancel()


@scene
async def test_a_video_arrives_after_the_negotiation() -> None:
    async with negotiating() as (source, target, negotiators):
        track = source.peer.add_video("cam")
        assert not track.live
        track.send(grey(10))  # ignored
        await negotiators[0].offer()
        assert track.live
        viewer = view(target.peer)
        for level in (60, 180):
            await see(track, viewer, level)
        assert (await track.report()).codec == "video/VP8"
        await source.data.send("still open")
        assert await target.data.receive() == "still open"


@scene
async def test_an_ended_video_makes_room_for_another_one() -> None:
    async with negotiating() as (source, target, negotiators):
        sizes = set()
        for number in range(MAX_TRACKS + 1):
            track = source.peer.add_video(f"cam{number}")
            assert not track.live
            await negotiators[0].offer()
            assert track.live
            track.close()
            track.close()
            assert not track.live
            await raises(MachineError, track.report)
            await negotiators[0].offer()
            sizes.add((await source.peer.offer()).sdp.count("m=video"))
        assert sizes == {1}
        await see_again(source, target, negotiators[0])


async def see_again(source: End, target: End, negotiator: Negotiator) -> None:
    old, new = source.peer.add_video("old"), source.peer.add_video("new")
    await negotiator.offer()
    old.close()
    await negotiator.offer()
    assert new.live
    await see(new, view(target.peer, 1), 90)


@scene
async def test_the_other_end_learns_the_name_of_the_stream() -> None:
    async with negotiating() as (source, _, negotiators):
        for name in ("cam", "remote+cam-2"):
            track = source.peer.add_video(name)
            names = re.findall(r"a=msid:(\S+) ", (await source.peer.offer()).sdp)
            assert names == [name]
            await negotiators[0].offer()
            track.close()
            await negotiators[0].offer()


@scene
async def test_an_end_that_takes_no_video_gets_none() -> None:
    async with negotiating(taking=False) as (source, target, negotiators):
        track = source.peer.add_video("cam")
        await negotiators[0].offer()
        assert not track.live
        track.send(grey(60))
        await target.data.send("still open")
        assert await source.data.receive() == "still open"


@scene
async def test_videos_have_limits_and_names() -> None:
    async with engines(NAMES[0]) as (engine,):
        end = new_end(engine)
        for name in ("", "a b", "a:b", "é", "a\r\nm=video", "x" * 257):
            with pytest.raises(MachineError) as caught:
                end.peer.add_video(name)
            assert caught.value.kind is ErrorKind.INVALID
        tracks = [end.peer.add_video(f"remote+cam-{number}") for number in range(MAX_TRACKS)]
        with pytest.raises(MachineError) as caught:
            end.peer.add_video("cam")
        assert caught.value.kind is ErrorKind.EXHAUSTED
        assert (await end.peer.offer()).sdp.count("m=video") == MAX_TRACKS
        end.peer.close()
        for track in tracks:
            track.send(grey(60))
            track.close()
            await raises(MachineError, track.report)
        with pytest.raises(MachineError):
            end.peer.add_video("cam")


@scene
async def test_all_videos_fit_into_a_message() -> None:
    async with negotiating() as (source, _, negotiators):
        for number in range(MAX_TRACKS):
            source.peer.add_video(f"{number}" * 256)
        await negotiators[0].offer()


@scene
async def test_the_other_end_negotiates_too() -> None:
    async with negotiating() as (source, target, negotiators):
        track = source.peer.add_video("cam")
        for _ in range(2):
            for negotiator in negotiators:
                await negotiator.offer()
            assert track.live
        if NAMES[1] == "wrtc":  # aiortc changes the payload types in its own offers, and receives nothing then
            await see(track, view(target.peer), 120)


@scene
async def test_a_connection_that_ends_ends_the_negotiation() -> None:
    async with negotiating() as (_, target, negotiators):
        async with trio.open_nursery() as nursery:
            target.peer.close()
            nursery.start_soon(raises, MachineError, partial(negotiators[0].offer))
        await raises(MachineError, negotiators[0].offer)


def without(codec: str, sdp: str) -> str:
    """Remove a codec of videos, with what repairs its losses, from a description."""
    numbers = re.findall(rf"a=rtpmap:(\d+) {codec}/", sdp)
    numbers += [number for base in numbers for number in re.findall(rf"a=fmtp:(\d+) apt={base}\r", sdp)]
    for number in numbers:
        sdp = re.sub(rf"a=(rtpmap|fmtp|rtcp-fb):{number} .*\r\n", "", sdp)
        sdp = re.sub(rf"(m=video .*) {number}\b", r"\1", sdp)
    return sdp


ANSWERS = {
    "another codec": lambda sdp: sdp.replace("VP8/90000", "XYZ/90000"),
    "no codec": lambda sdp: re.sub(r"m=video (\S+) (\S+) .*", r"m=video \1 \2 0", sdp),
    "no video": lambda sdp: sdp[: sdp.index("m=video")],
    "video twice": lambda sdp: sdp + sdp[sdp.index("m=video") :],
    "another id": lambda sdp: re.sub(r"a=mid:\w+", "a=mid:zzz", sdp),
    "refused": lambda sdp: re.sub(r"m=video \d+", "m=video 0", sdp),
    "both directions": lambda sdp: sdp.replace("a=recvonly", "a=sendrecv"),
    "other direction": lambda sdp: sdp.replace("a=recvonly", "a=sendonly"),
    "no bandwidth": lambda sdp: re.sub(r"(m=video .*\r\nc=.*\r\n)", r"\1b=AS:0\r\n", sdp),
    "much bandwidth": lambda sdp: re.sub(r"(m=video .*\r\nc=.*\r\n)", r"\1b=AS:99999999999999999999\r\n", sdp),
    "other parameters": lambda sdp: sdp.replace("a=mid:1\r\n", "a=mid:1\r\na=fmtp:96 max-fr=-1;max-fs=0;apt=96\r\n"),
    "simulcast": lambda sdp: sdp + "a=rid:a recv\r\na=rid:b recv\r\na=simulcast:recv a;b\r\n",
    "other extensions": lambda sdp: sdp + "a=extmap:999999 urn:x\r\na=extmap:1 urn:ietf:params:rtp-hdrext:toffset\r\n",
}


@pytest.mark.parametrize("name", ANSWERS)
@scene
async def test_an_answer_that_is_not_valid_breaks_nothing_else(name: str) -> None:
    async with engines(*NAMES) as (first, second):
        source, target = new_end(first), new_end(second)
        let_media_in(target.peer)
        await join(source, target)
        track = source.peer.add_video("cam")
        await target.peer.accept(await source.peer.offer())
        true = await target.peer.answer()
        accepted = await accepts(source, Description("answer", ANSWERS[name](true.sdp)))
        if not accepted:
            await source.peer.accept(true)
            await see(track, view(target.peer), 150)
        for _ in range(5):
            track.send(grey(70))
            await trio.sleep(0.02)
        track.close()
        source.peer.add_video("again").close()
        await source.data.send("still open")
        assert await target.data.receive() == "still open"


async def accepts(end: End, description: Description) -> bool:
    """Apply a description; return False if it is refused as input that is not valid."""
    try:
        await end.peer.accept(description)
    except MachineError as error:
        return error.kind is not ErrorKind.INVALID
    return True


@scene
async def test_the_other_end_may_pause_and_stop_a_video() -> None:
    if NAMES != ("wrtc", "wrtc"):
        pytest.skip("aiortc neither stops a video nor notices that it was stopped")
    async with negotiating() as (source, target, negotiators):
        native: Any = target.peer
        for _ in range(2):
            track = source.peer.add_video("cam")
            await negotiators[0].offer()
            await see(track, view(native, -1), 150)
            pause(native)
            await negotiators[1].offer()
            assert not track.live
            resume(native)
            await negotiators[1].offer()
            await see(track, view(native, -1), 110)
            native._native.getTransceivers()[-1].stop()
            await negotiators[1].offer()
            assert not track.live
            track.send(grey(60))
            track.close()
        assert (await source.peer.offer()).sdp.count("m=video") == 1


def pause(native: Any) -> None:
    native._native.getTransceivers()[-1].direction = directions().inactive


def resume(native: Any) -> None:
    native._native.getTransceivers()[-1].direction = directions().recvonly


def directions() -> Any:
    from rpc.peers.wrtc_native import enums

    return enums.RTCRtpTransceiverDirection


MEDIA = (
    "m=video {port} UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:{mid}\r\na={direction}\r\na=rtcp-mux\r\n"
    "a=rtpmap:96 VP8/90000\r\n"
)


@pytest.mark.parametrize("direction", ["sendonly", "recvonly", "sendrecv", "inactive"])
@pytest.mark.parametrize("port", [0, 9])
@scene
async def test_media_in_a_first_offer_does_no_harm(port: int, direction: str) -> None:
    async with engines(*NAMES) as (first, second):
        client, machine = new_end(first), new_end(second)
        offer = await client.peer.offer()
        keys = "".join(f"{line}\r\n" for line in offer.sdp.splitlines() if KEYS.match(line))
        media = MEDIA.format(port=port, mid="v", direction=direction) + keys
        if await accepts(machine, Description("offer", offer.sdp + media)):
            await machine.peer.answer()
            machine.peer.add_video("cam")
            await machine.peer.offer()


KEYS = re.compile("a=(ice-ufrag|ice-pwd|fingerprint|setup)")
