"""A machine in memory that shows a camera, and connections to it whose engine only keeps frames."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, ClassVar, cast

import trio
from PIL import Image as Pillow

from engine.components.media.audio import AudioInfo, AudioProperties
from engine.components.media.audio_in import AudioChunk, AudioIn, AudioResponse
from engine.components.media.camera import Camera, Image, Images
from engine.registry import Registry
from engine.resource import Extra
from models import BUILTIN
from rpc.api.client import ApiClient
from rpc.call import ServerCore
from rpc.carrier import Peer
from rpc.datachannel.client import CallChannel
from rpc.datachannel.server import serve_channel
from rpc.peers.channel import MessageChannel
from rpc.peers.memory import memory_channels
from rpc.peers.port import Description, PeerConnection, Sound, TrackReport, VideoFrame
from rpc.peers.signals import decode_description as decode
from rpc.peers.signals import encode_description as encode
from runtime.parts.video.part import Video
from runtime.parts.video.streams import Streams
from runtime.server.memory import MemoryMachine, open_machine
from schema.names import API, Model

SERVICE = "proto.stream.v1.StreamService"
CAMERA = "rdk:component:camera"
MICROPHONE = "rdk:component:audio_in"
MODEL = "test:video:camera"
SIZE = (64, 48)


def jpeg(level: int, size: tuple[int, int] = SIZE) -> bytes:
    buffer = io.BytesIO()
    Pillow.new("RGB", size, (level, level, level)).save(buffer, "JPEG")
    return buffer.getvalue()


class ChangingCamera(Camera):
    """Returns a brighter picture with every call; raises `error` instead if it is set."""

    calls: ClassVar[int] = 0
    error: ClassVar[Exception | None] = None
    changing: ClassVar[bool] = True
    _call: ClassVar[trio.lowlevel.ParkingLot] = trio.lowlevel.ParkingLot()

    @classmethod
    async def called(cls, times: int) -> None:
        """Wait for further calls."""
        for _ in range(times):
            await cls._call.park()

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        ChangingCamera.calls += 1
        self._call.unpark_all()
        return Images([Image(jpeg(100 + (ChangingCamera.calls % 100 if self.changing else 0), SIZE))])


class Microphone(AudioIn):
    """Records chunks with the format `info`, of which the properties may say another; raises `error` if it is set."""

    recordings: ClassVar[int] = 0
    error: ClassVar[Exception | None] = None
    ends: ClassVar[bool] = False
    info: ClassVar[AudioInfo] = AudioInfo("pcm16", 16_000, 1)
    properties: ClassVar[AudioProperties] = AudioProperties(("mp3", "pcm16"), 16_000, 1)
    data: ClassVar[bytes] = b"\x01\x02"

    async def get_audio(
        self,
        duration_seconds: float = 0.0,
        codec: str = "",
        request_id: str = "",
        previous_timestamp_nanoseconds: int = 0,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[AudioResponse, None]:
        assert codec in self.properties.supported_codecs
        Microphone.recordings += 1
        try:
            while not self.ends:
                if self.error is not None:
                    raise self.error
                await trio.sleep(0.01)
                yield AudioResponse(AudioChunk(self.data, self.info))
        finally:
            Microphone.recordings -= 1

    async def get_properties(self, *, extra: Extra = None) -> AudioProperties:
        await trio.lowlevel.checkpoint()
        return self.properties


def document(*names: str) -> dict[str, Any]:
    fakes = [
        {"name": "ears", "api": MICROPHONE, "model": MODEL},
        {"name": "s", "api": "rdk:component:sensor", "model": "fake"},
    ]
    return {"components": [*({"name": name, "api": CAMERA, "model": MODEL} for name in names), *fakes]}


class FakeTrack:
    """Keeps the frames that it gets while it is live."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.live = False
        self.closed = False
        self.frames: list[Any] = []
        self._sent, self._received = trio.open_memory_channel[Any](inf)

    def send(self, frame: VideoFrame | Sound) -> None:
        if self.live:
            self.frames.append(frame)
            self._sent.send_nowait(frame)

    async def next(self) -> Any:
        return await self._received.receive()

    async def luma(self, *, over: int = 0, under: int = 256) -> int:
        """Wait for a frame whose first pixel is between these levels; return it."""
        while True:
            level: int = (await self.next()).planes[0]
            if over < level < under:
                return level

    async def report(self) -> TrackReport:
        return TrackReport()

    def close(self) -> None:
        self.live, self.closed = False, True


@dataclass
class FakePeer:
    """An engine's connection: its tracks are live after an answer, unless the client takes no video."""

    takes: bool = True
    tracks: list[FakeTrack] = field(default_factory=list)

    def add_sound(self, stream: str) -> FakeTrack:
        return self.add_video(stream)

    def add_video(self, stream: str) -> FakeTrack:
        self.tracks.append(FakeTrack(stream))
        return self.tracks[-1]

    async def offer(self) -> Description:
        await trio.lowlevel.checkpoint()
        return Description("offer", "")

    async def accept(self, _description: Description) -> None:
        await trio.lowlevel.checkpoint()
        for track in self.tracks:
            track.live = self.takes and not track.closed


@dataclass
class Log:
    """A log that keeps its events."""

    events: list[tuple[str, str]] = field(default_factory=list)
    change: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    def warning(self, event: str, **_: Any) -> None:
        self.events.append(("warning", event))
        self.change.unpark_all()

    def info(self, event: str, **_: Any) -> None:
        self.events.append(("info", event))
        self.change.unpark_all()


@dataclass
class Client:
    """One connection to the machine: its engine, its streams on the machine's side, and calls over a data channel."""

    peer: FakePeer
    streams: Streams
    api: ApiClient
    negotiation: MessageChannel
    scope: trio.CancelScope

    @property
    def track(self) -> FakeTrack:
        """The newest track."""
        return self.peer.tracks[-1]

    async def call(self, method: str, **arguments: Any) -> Any:
        return await self.api.call(SERVICE, "", method, **arguments)


class Scene:
    """The machine, its video part, and a nursery for its clients."""

    def __init__(self, memory: MemoryMachine, nursery: trio.Nursery) -> None:
        self.memory = memory
        self.nursery = nursery
        self.log = Log()
        context = memory.machine.part_context(memory.serving.router, {}, lambda: None)
        self.video = Video(replace(context, log=cast("Any", self.log)))
        self.core = ServerCore(memory.serving.router)

    @property
    def tasks(self) -> int:
        """Number of sources that run, including those that end."""
        assert self.video._nursery is not None
        return len(self.video._nursery.child_tasks)

    async def client(self, *, takes: bool = True, answers: bool = True) -> Client:
        """Return a new connection, which ends with its scope or with the scene."""
        return cast("Client", await self.nursery.start(self._connect, FakePeer(takes), answers))

    async def _connect(self, peer: FakePeer, answers: bool, *, task_status: trio.TaskStatus[Client]) -> None:
        async with AsyncExitStack() as stack:
            near, far = await stack.enter_async_context(memory_channels("negotiation"))
            data_near, data_far = await stack.enter_async_context(memory_channels())
            nursery = await stack.enter_async_context(trio.open_nursery())
            connection = self.video.connection(cast("PeerConnection", peer), near)
            streams = await stack.enter_async_context(connection)
            if answers:
                nursery.start_soon(answer, far)
            nursery.start_soon(lambda: serve_channel(data_near, self.core, peer=Peer(None, media=streams)))
            calls = await stack.enter_async_context(CallChannel(data_far))
            with trio.CancelScope() as scope:
                task_status.started(Client(peer, streams, ApiClient(calls), far, scope))
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()


async def answer(channel: MessageChannel) -> None:
    """Answer every offer, as a client does."""
    while True:
        try:
            assert decode(await channel.receive()).kind == "offer"
            await channel.send(encode(Description("answer", "")))
        except (trio.EndOfChannel, trio.BrokenResourceError):
            return


@asynccontextmanager
async def scene(*names: str) -> AsyncIterator[Scene]:
    """Run a machine with these cameras."""
    ChangingCamera.calls, ChangingCamera.error = 0, None
    ChangingCamera.changing = True
    registry = Registry(BUILTIN)
    registry.add(API.parse(CAMERA), Model.parse(MODEL), ChangingCamera)
    registry.add(API.parse(MICROPHONE), Model.parse(MODEL), Microphone)
    async with open_machine(document(*names), registry=registry) as memory, trio.open_nursery() as nursery:
        await memory.graph.settled()
        result = Scene(memory, nursery)
        await nursery.start(result.video.run, {})
        yield result
        nursery.cancel_scope.cancel()
