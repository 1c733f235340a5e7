"""Scenes for test_conformance.py: outgoing sound between two engines, see `pairs.NAMES`."""

from __future__ import annotations

import array
import math
import re

import pytest
import trio

from rpc.peers.port import MAX_SOUND, MAX_SOUNDS, MAX_TRACKS, Sound, SoundTrack
from schema.errors import ErrorKind, MachineError
from tests.netns.peers.pairs import NAMES, engines, interface, new_end, scene
from tests.netns.peers.video_scenes import negotiating, see
from tests.netns.peers.viewers import listen, pitch_of, view
from tests.unit.rpc.peers.contract import raises

__all__ = ["interface"]
PIECE = 0.1  # seconds


def tone(pitch: float, rate: int, channels: int, first: int, count: int) -> Sound:
    """Return samples of a tone, the same in all channels."""
    samples = array.array("h")
    for number in range(first, first + count):
        samples.extend([round(16_000 * math.sin(2 * math.pi * pitch * number / rate))] * channels)
    return Sound(rate, channels, samples.tobytes())


async def play(track: SoundTrack, pitch: float, rate: int, channels: int) -> None:
    """Send a tone in real time."""
    count, first, begin = int(rate * PIECE), 0, trio.current_time()
    while True:
        track.send(tone(pitch, rate, channels, first, count))
        first += count
        await trio.sleep_until(begin + first / rate)


@pytest.mark.parametrize(
    ("rate", "channels"), [(48_000, 1), (16_000, 1), (44_100, 2), (8_000, 2), (22_050, 1), (192_000, 2)]
)
@scene
async def test_a_sound_of_any_rate_arrives_with_its_pitch(rate: int, channels: int) -> None:
    async with negotiating() as (source, target, negotiators), trio.open_nursery() as nursery:
        track = source.peer.add_sound("ears")
        assert not track.live
        track.send(tone(440, rate, channels, 0, 100))  # ignored
        await negotiators[0].offer()
        assert track.live
        nursery.start_soon(play, track, 440.0, rate, channels)
        assert 430 < await pitch_of(listen(target.peer), 440) < 450
        assert (await track.report()).codec == "audio/opus"
        nursery.cancel_scope.cancel()


@scene
async def test_the_format_of_a_sound_may_change() -> None:
    async with negotiating() as (source, target, negotiators):
        track = source.peer.add_sound("ears")
        await negotiators[0].offer()
        listener = listen(target.peer)
        for pitch, rate, channels in ((440, 16_000, 1), (880, 44_100, 2), (660, 16_000, 1)):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(play, track, pitch, rate, channels)
                await pitch_of(listener, pitch)
                nursery.cancel_scope.cancel()


@scene
async def test_sound_and_video_are_sent_together() -> None:
    async with negotiating() as (source, target, negotiators), trio.open_nursery() as nursery:
        sound, video = source.peer.add_sound("ears"), source.peer.add_video("cam")
        await negotiators[0].offer()
        names = re.findall(r"a=msid:(\S+) ", (await source.peer.offer()).sdp)
        assert sorted(names) == ["cam", "ears"]
        nursery.start_soon(play, sound, 440.0, 16_000, 1)
        await see(video, view(target.peer), 120)
        await pitch_of(listen(target.peer), 440)
        nursery.cancel_scope.cancel()


@scene
async def test_an_ended_sound_makes_room_for_another_one() -> None:
    async with negotiating() as (source, target, negotiators):
        for number in range(MAX_SOUNDS + 1):
            track = source.peer.add_sound(f"ears{number}")
            await negotiators[0].offer()
            track.close()
            assert not track.live
            track.send(tone(440, 16_000, 1, 0, 100))
            await raises(MachineError, track.report)
            await negotiators[0].offer()
        assert (await source.peer.offer()).sdp.count("m=audio") == 1
        again = source.peer.add_sound("ears")
        await negotiators[0].offer()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(play, again, 550.0, 16_000, 1)
            await pitch_of(listen(target.peer), 550)
            nursery.cancel_scope.cancel()


@scene
async def test_sounds_have_limits() -> None:
    async with engines(NAMES[0]) as (engine,):
        peer = new_end(engine).peer
        for _ in range(MAX_SOUNDS):
            peer.add_sound("ears")
        for _ in range(MAX_TRACKS):
            peer.add_video("cam")
        with pytest.raises(MachineError, match=f"{MAX_SOUNDS} sounds") as caught:
            peer.add_sound("ears")
        assert caught.value.kind is ErrorKind.EXHAUSTED


@scene
async def test_all_tracks_fit_into_a_message() -> None:
    async with negotiating() as (source, _, negotiators):
        tracks = [source.peer.add_video(f"{number}" * 256) for number in range(MAX_TRACKS)]
        sounds = [source.peer.add_sound(f"{number}" * 256) for number in range(MAX_SOUNDS)]
        await negotiators[0].offer()
        assert all(track.live for track in tracks)
        assert all(sound.live for sound in sounds)


@scene
async def test_an_end_that_takes_no_sound_gets_none() -> None:
    async with negotiating(taking=False) as (source, target, negotiators):
        track = source.peer.add_sound("ears")
        await negotiators[0].offer()
        assert not track.live
        await target.data.send("still open")
        assert await source.data.receive() == "still open"


@scene
async def test_sound_of_minutes_at_once_is_dropped() -> None:
    async with negotiating() as (source, target, negotiators), trio.open_nursery() as nursery:
        track = source.peer.add_sound("ears")
        await negotiators[0].offer()
        track.send(tone(220, 16_000, 1, 0, 600 * 16_000))  # ten minutes at once
        nursery.start_soon(play, track, 660.0, 16_000, 1)
        with trio.fail_after(20 + MAX_SOUND):
            await pitch_of(listen(target.peer), 660)
        nursery.cancel_scope.cancel()
