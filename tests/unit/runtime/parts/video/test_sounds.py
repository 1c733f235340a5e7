"""Sound of microphones over StreamService, and the conversion of what they record."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.media.audio import AudioInfo, AudioProperties
from rpc.peers.port import Sound
from runtime.parts.video import microphone, retry
from runtime.parts.video.sounds import MAX_CHUNK, codec_of, sound_of
from schema.errors import ErrorKind, MachineError
from tests.unit.runtime.parts.video.test_streams import fails
from tests.unit.runtime.parts.video.viewers import Microphone, scene

CONVERSIONS = [
    ("pcm16", struct.pack("<3h", -5, 0, 32_767), (-5, 0, 32_767)),
    ("pcm32", struct.pack("<3i", -5 << 16, 99, 0x7FFF_FFFF), (-5, 0, 32_767)),
    ("pcm32_float", struct.pack("<3f", -1, 0, 0.5), (-32_767, 0, 16_383)),
    ("pcm32_float", struct.pack("<3f", -9, math.nan, math.inf), (-32_767, 0, 32_767)),
]


@pytest.mark.parametrize(("codec", "data", "samples"), CONVERSIONS)
def test_every_codec_becomes_16_bits(codec: str, data: bytes, samples: tuple[int, ...]) -> None:
    assert sound_of("ears", data, AudioInfo(codec, 16_000, 1)) == Sound(16_000, 1, struct.pack("<3h", *samples))


@pytest.mark.parametrize(
    ("data", "info", "kind", "word"),
    [
        (b"", AudioInfo("mp3", 16_000, 1), ErrorKind.UNSUPPORTED, "pcm32_float"),
        (b"", AudioInfo("pcm16", 7_999, 1), ErrorKind.UNSUPPORTED, "7999"),
        (b"", AudioInfo("pcm16", 192_001, 1), ErrorKind.UNSUPPORTED, "192001"),
        (b"", AudioInfo("pcm16", 16_000, 0), ErrorKind.UNSUPPORTED, "0 channels"),
        (b"", AudioInfo("pcm16", 16_000, 8), ErrorKind.UNSUPPORTED, "8 channels"),
        (bytes(6), AudioInfo("pcm16", 16_000, 2), ErrorKind.INVALID, "6 bytes"),
        (bytes(MAX_CHUNK + 4), AudioInfo("pcm16", 16_000, 2), ErrorKind.INVALID, "at most"),
    ],
)
def test_other_sound_is_an_error(data: bytes, info: AudioInfo, kind: ErrorKind, word: str) -> None:
    with pytest.raises(MachineError, match=word) as caught:
        sound_of("ears", data, info)
    assert caught.value.kind is kind


def test_the_simplest_codec_is_requested() -> None:
    assert codec_of("ears", AudioProperties(("mp3", "pcm32_float", "pcm16"), 16_000, 1)) == "pcm16"
    assert codec_of("ears", AudioProperties(("mp3", "pcm32_float"), 48_000, 2)) == "pcm32_float"


async def test_listeners_share_one_recording_and_the_last_one_ends_it() -> None:
    async with scene() as here:
        clients = [await here.client() for _ in range(3)]
        for client in clients:
            await client.call("add_stream", name="ears")
            assert await client.track.next() == Sound(16_000, 1, Microphone.data)
            assert (here.tasks, Microphone.recordings) == (1, 1)
        newest = await clients[2].track.next()
        assert any(frame is newest for frame in clients[0].track.frames)
        clients[0].scope.cancel()
        for client in clients[1:]:
            await client.call("remove_stream", name="ears")
            assert client.track.closed
        assert here.video.sources == {}
        while Microphone.recordings or here.tasks:
            await trio.lowlevel.checkpoint()


async def test_a_format_that_cannot_be_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as here:
        client = await here.client()
        for properties, word in (
            (AudioProperties(("mp3", "opus"), 16_000, 1), "records mp3, opus"),
            (AudioProperties((), 16_000, 1), "no codec"),
            (AudioProperties(("pcm16",), 4_000, 1), "4000"),
            (AudioProperties(("pcm16",), 16_000, 6), "6 channels"),
        ):
            monkeypatch.setattr(Microphone, "properties", properties)
            await fails(ErrorKind.UNSUPPORTED, client.call("add_stream", name="ears"), word)
        assert (here.tasks, Microphone.recordings) == (0, 0)
        assert all(track.closed for track in client.peer.tracks)


async def test_a_client_that_takes_no_sound_starts_no_recording() -> None:
    async with scene() as here:
        client = await here.client(takes=False)
        await fails(ErrorKind.PRECONDITION, client.call("add_stream", name="ears"), "Opus")
        assert (here.tasks, Microphone.recordings) == (0, 0)


@pytest.mark.parametrize(
    ("name", "value"), [("error", OSError("unplugged")), ("ends", True), ("data", b"x"), ("info", AudioInfo("mp3"))]
)
async def test_a_microphone_that_fails_is_asked_again(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY", 0.001)
    async with scene() as here:
        client = await here.client()
        await client.call("add_stream", name="ears")
        await client.track.next()
        with monkeypatch.context() as broken:
            broken.setattr(Microphone, name, value)
            await here.log.change.park()
            assert [kind for kind, _ in here.log.events] == ["warning"]
        while [kind for kind, _ in here.log.events] != ["warning", "info"]:
            await client.track.next()
        assert Microphone.recordings == 1


async def test_a_microphone_that_hangs_is_an_error(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: object) -> AudioProperties:
        await trio.sleep_forever()

    async with scene() as here:
        monkeypatch.setattr(Microphone, "get_properties", hang)
        client = await here.client()
        begin = trio.current_time()
        await fails(ErrorKind.TIMEOUT, client.call("add_stream", name="ears"), "has not answered")
        assert trio.current_time() == begin + microphone.CAPTURE_LIMIT
        assert (here.tasks, Microphone.recordings) == (0, 0)
