"""Sound of one microphone for all of its listeners."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import Any, Final

import structlog
import trio

from engine import AudioIn, AudioInfo, Roster
from rpc.peers import Sound, SoundTrack
from runtime.parts.video.retry import Retries
from runtime.parts.video.sounds import codec_of, sound_of
from schema import ErrorKind, MachineError
from support import Worker

CAPTURE_LIMIT: Final = 5.0  # seconds for the properties, and for each chunk


async def check_format(roster: Roster, name: str) -> None:
    """Raise MachineError (UNSUPPORTED) if the sound of a microphone, by its full name, cannot be sent."""
    async with roster.find(name).use() as driver:
        assert isinstance(driver, AudioIn)
        await _opened(name, driver)


async def _opened(name: str, driver: AudioIn) -> AudioInfo:
    """Return the format to request."""
    try:
        with trio.fail_after(CAPTURE_LIMIT):
            properties = await driver.get_properties()
    except trio.TooSlowError:
        raise _late(name) from None
    codec = codec_of(name, properties)
    return AudioInfo(codec, properties.sample_rate_hz, properties.num_channels)


def _late(name: str) -> MachineError:
    return MachineError(f"{name} has not answered for {CAPTURE_LIMIT:g} s", kind=ErrorKind.TIMEOUT)


class MicrophoneSource:
    """Records with one microphone while it has listeners, and passes each chunk to the encoders of all of them.

    Nothing is stored: a listener hears what is recorded from now on. While the microphone fails, it is asked again
    after growing delays, and listeners hear nothing.
    """

    def __init__(self, roster: Roster, name: str, log: structlog.stdlib.BoundLogger) -> None:
        self.viewers: set[SoundTrack] = set()
        self.chunks = 0  # recorded since the start
        self._roster = roster
        self._name = name
        self._worker = Worker(f"sound of {name}")
        self._scope = trio.CancelScope()
        self._retries = Retries(
            log,
            "a microphone has no sound for its listeners",
            "a microphone has sound for its listeners again",
            microphone=name,
        )

    def join(self, viewer: SoundTrack) -> None:
        """Add a listener, whose track is live."""
        self.viewers.add(viewer)

    def leave(self, viewer: SoundTrack) -> None:
        """Remove a listener; the source ends with the last one."""
        self.viewers.discard(viewer)
        if not self.viewers:
            self._scope.cancel()

    async def run(self) -> None:
        """Record until the last listener has left."""
        with self._scope:
            async with self._worker.opened():
                while True:
                    try:
                        await self._record()
                    except Exception as error:  # whatever a driver raises; it may work again later
                        await self._retries.failed(error)

    async def _record(self) -> None:
        """Pass on what the microphone records; raises the error that ends it."""
        async with self._roster.find(self._name).use() as driver:
            assert isinstance(driver, AudioIn)
            requested = await _opened(self._name, driver)
            async with aclosing(driver.get_audio(codec=requested.codec)) as chunks:
                while True:
                    data, info = await self._next(chunks, requested)
                    self._send(await self._worker.run(partial(sound_of, self._name, data, info)))
                    self._retries.succeeded()

    async def _next(self, chunks: Any, requested: AudioInfo) -> tuple[bytes, AudioInfo]:
        """Return the next chunk and its format, which is the requested one unless the chunk says otherwise."""
        try:
            with trio.fail_after(CAPTURE_LIMIT):
                chunk = (await anext(chunks)).audio
        except trio.TooSlowError:
            raise _late(self._name) from None
        except StopAsyncIteration:
            raise MachineError(f"{self._name} has ended its recording", kind=ErrorKind.UNAVAILABLE) from None
        info = chunk.audio_info
        return chunk.audio_data, AudioInfo(
            info.codec or requested.codec,
            info.sample_rate_hz or requested.sample_rate_hz,
            info.num_channels or requested.num_channels,
        )

    def _send(self, sound: Sound) -> None:
        self.chunks += 1
        for viewer in tuple(self.viewers):
            viewer.send(sound)
