"""Measure video of a camera for several viewers: `python -m bench video [ENGINE]`.

A machine and its viewers are two processes in a network namespace of their own. The camera draws the time as a row of
blocks into pictures of 640 x 480 pixels; the viewers read it from the decoded pictures. The share of a processor is
that of the machine's process, all threads, without the time for drawing. The longest step is the longest time for which
another task of the machine did not run. At the end, the link of one viewer is limited. Needs root, or user namespaces,
and tc of iproute2.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, ClassVar, Final

import psutil
import trio

from bench.peers import Watch, add_interfaces
from engine.components.media.camera import Camera, Image, Images
from engine.registry import Registry
from engine.resource import Extra
from models import BUILTIN
from rpc.api.client import ApiClient
from rpc.call import ServerCore
from rpc.carrier import Peer
from rpc.datachannel.client import CallChannel
from rpc.datachannel.server import serve_channel
from rpc.peers.media.negotiation import Negotiator
from rpc.peers.port import PeerConnection
from runtime.parts.video.part import Video
from runtime.server.memory import open_machine
from schema.names import API, Model
from tests.netns.peers.pairs import End, new_end
from tests.netns.peers.remote import accept, signalled
from tests.netns.peers.viewers import Picture, Viewer, let_media_in, view

INSIDE: Final = "--inside"
VIEWING: Final = "--viewing"
SERVICE: Final = "proto.stream.v1.StreamService"
MODEL: Final = "bench:video:clock"
SIZE: Final = (640, 480)
BITS: Final = 16  # of the time in milliseconds
VIEWERS: Final = 3
SETTLE: Final = 6.0  # seconds until the estimate of the link is stable
SECONDS: Final = 10.0
PICTURES: Final = 20
ADAPT: Final = 20.0  # seconds until the encoder has adapted to another link
LINKS: Final = {
    "300 kbit/s": ("add", "dev", "lo", "root", "tbf", "rate", "300kbit", "burst", "8kb", "latency", "200ms"),
    "no limit": ("del", "dev", "lo", "root"),
}
"""Links for one viewer: arguments of `tc qdisc`. The addresses of the namespace are reached through lo."""


class ClockCamera(Camera):
    """Draws the time into changing pictures."""

    drawn: ClassVar[int] = 0
    seconds: ClassVar[float] = 0.0  # processor time for drawing
    _backgrounds: ClassVar[list[Any]] = []

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """Take an image with each sensor in `filter_source_names` (empty: all sensors) at the same time."""
        await trio.lowlevel.checkpoint()
        begin = time.thread_time()
        data = self._draw()
        ClockCamera.seconds += time.thread_time() - begin
        ClockCamera.drawn += 1
        return Images([Image(data)])

    def _draw(self) -> bytes:
        from PIL import Image as Pillow
        from PIL import ImageDraw

        if not self._backgrounds:
            for number in range(PICTURES):
                image = Pillow.effect_noise((SIZE[0] // 8, SIZE[1] // 8), 60).resize(SIZE).convert("RGB")
                draw = ImageDraw.Draw(image)
                for _ in range(20):
                    x, y = random.random() * SIZE[0], random.random() * SIZE[1]
                    draw.rectangle((x, y, x + 40, y + 40), fill=(12 * number, 128, 255 - 12 * number))
                self._backgrounds.append(image)
        image = self._backgrounds[ClockCamera.drawn % PICTURES].copy()
        draw, width = ImageDraw.Draw(image), SIZE[0] // BITS
        now = _now()
        for bit in range(BITS):
            draw.rectangle((bit * width, 0, (bit + 1) * width, 2 * width), fill="white" if now >> bit & 1 else "black")
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=90)
        return buffer.getvalue()


def main(argv: Sequence[str]) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser("python -m bench video", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(VIEWING, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.viewing:
        trio.run(_view)
    elif options.inside:
        add_interfaces()
        trio.run(_serve)
    else:
        mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
        words = [sys.executable, "-m", "bench.video", INSIDE]
        return subprocess.call(["unshare", "--net", *mapped, *words])
    return 0


# The machine


async def _serve() -> None:
    registry = Registry(BUILTIN)
    registry.add(API.parse("rdk:component:camera"), Model.parse(MODEL), ClockCamera)
    document = {"components": [{"name": "clock", "api": "rdk:component:camera", "model": MODEL}]}
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(open_machine(document, registry=registry))
        await memory.graph.settled()
        nursery = await stack.enter_async_context(trio.open_nursery())
        video = Video(memory.machine.part_context(memory.serving.router, {}, lambda: None))
        await nursery.start(video.run, {})
        from rpc.peers.wrtc_engine import open_engine

        engine = await stack.enter_async_context(open_engine())
        core = ServerCore(memory.serving.router)
        child = await stack.enter_async_context(_viewers())
        watch = Watch()
        nursery.start_soon(watch.run)
        for _ in range(VIEWERS):
            end = new_end(engine)
            await accept(end, await child.read())
            await child.write(await signalled(end, await end.peer.answer()))
            await nursery.start(_connection, video, end, core)
        print(f"{SIZE[0]} x {SIZE[1]}, {os.cpu_count()} processors:")
        _show("no viewer", *await _measured(watch))
        for count in range(1, VIEWERS + 1):
            await child.ask("add")
            await trio.sleep(SETTLE)
            await child.ask("begin")
            share, pictures = await _measured(watch)
            _show(f"{count} viewers", share, f"{pictures}; {await child.ask('report')}")
        for _ in range(VIEWERS - 1):
            await child.ask("remove")
        for subject, words in LINKS.items():
            await trio.run_process(["tc", "qdisc", *words])
            await trio.sleep(ADAPT)
            await child.ask("begin")
            share, _ = await _measured(watch)
            (track,) = next(iter(video.sources.values())).viewers
            report = await track.report()
            limits = f"encoder {report.target_rate} bit/s, limited by {report.limited_by}"
            _show(subject, share, f"{limits}; {await child.ask('report')}")
        await child.ask("remove")
        print(f"  sources after the last viewer has left: {len(video.sources)}")
        _show("no viewer", *await _measured(watch))
        nursery.cancel_scope.cancel()


async def _connection(video: Video, end: End, core: ServerCore, *, task_status: trio.TaskStatus[None]) -> None:
    async with video.connection(end.peer, end.control) as streams:
        task_status.started()
        await serve_channel(end.data, core, peer=Peer(None, media=streams))


async def _measured(watch: Watch) -> tuple[str, str]:
    """Return the share of a processor, and the number of pictures that the camera has taken each second."""
    watch.longest()
    begin, cpu = time.perf_counter(), time.process_time()
    drawn, drawing = ClockCamera.drawn, ClockCamera.seconds
    await trio.sleep(SECONDS)
    wall = time.perf_counter() - begin
    cpu = time.process_time() - cpu - (ClockCamera.seconds - drawing)
    memory = psutil.Process().memory_info().rss / (1 << 20)
    share = f"{100 * cpu / wall:5.1f} % of a processor, longest step {watch.longest():.1f} ms, {memory:.0f} MiB"
    return share, f"camera {(ClockCamera.drawn - drawn) / wall:.1f}/s"


class _Child:
    """The process of the viewers: one line of text in each direction."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input = process.stdin
        self._output = process.stdout
        self._data = b""

    async def write(self, line: str) -> None:
        """Send a line."""
        await self._input.send_all(f"{line}\n".encode())

    async def read(self) -> str:
        """Return the next line."""
        while b"\n" not in self._data:
            data = await self._output.receive_some()
            assert data, "the process of the viewers has ended"
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return line.decode()

    async def ask(self, line: str) -> str:
        """Send a line, and return the answer."""
        await self.write(line)
        return await self.read()


@asynccontextmanager
async def _viewers() -> AsyncIterator[_Child]:
    async with trio.open_nursery() as nursery:
        words = [sys.executable, "-m", "bench.video", VIEWING]
        start = partial(trio.run_process, words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
        yield _Child(await nursery.start(start))
        nursery.cancel_scope.cancel()


def _show(subject: str, share: str, pictures: str) -> None:
    print(f"  {subject:12} {share}; {pictures}", flush=True)


# The viewers


async def _view() -> None:
    from rpc.peers.wrtc_engine import open_engine

    lines = trio.lowlevel.FdStream(os.dup(0))
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine())
        nursery = await stack.enter_async_context(trio.open_nursery())
        clients = []
        child = _Lines(lines)
        for _ in range(VIEWERS):
            end = new_end(engine)
            let_media_in(end.peer)
            print(await signalled(end, await end.peer.offer()), flush=True)
            await accept(end, await child.read())
            await end.data.wait_open()
            await end.control.wait_open()
            nursery.start_soon(Negotiator(end.peer, end.control).run)
            calls = await stack.enter_async_context(CallChannel(end.data))
            clients.append(_Client(end.peer, ApiClient(calls)))
        watching: list[_Client] = []
        while True:
            match await child.read():
                case "add":
                    watching.append(clients[len(watching)])
                    await watching[-1].add(nursery)
                    print("added", flush=True)
                case "remove":
                    await watching.pop().remove()
                    print("removed", flush=True)
                case "begin":
                    for client in watching:
                        client.begin()
                    print("begun", flush=True)
                case "report":
                    print("; ".join(client.report() for client in watching), flush=True)


class _Lines:
    def __init__(self, stream: trio.lowlevel.FdStream) -> None:
        self._stream = stream
        self._data = b""

    async def read(self) -> str:
        while b"\n" not in self._data:
            data = await self._stream.receive_some()
            if not data:
                raise SystemExit
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return line.decode()


class _Client:
    """One viewer."""

    def __init__(self, peer: PeerConnection, client: ApiClient) -> None:
        self._peer = peer
        self._client = client
        self._delays: list[int] = []
        self._size = (0, 0)
        self._began = 0.0

    async def add(self, nursery: trio.Nursery) -> None:
        await self._client.call(SERVICE, "", "add_stream", name="clock")
        nursery.start_soon(self._watch, view(self._peer))

    async def remove(self) -> None:
        await self._client.call(SERVICE, "", "remove_stream", name="clock")

    async def _watch(self, viewer: Viewer) -> None:
        while True:
            picture = await viewer.next()
            self._size = picture.width, picture.height
            self._delays.append((_now() - _time_in(picture)) % (1 << BITS))

    def begin(self) -> None:
        self._delays.clear()
        self._began = time.perf_counter()

    def report(self) -> str:
        rate = len(self._delays) / (time.perf_counter() - self._began)
        ordered = sorted(self._delays)
        return (
            f"{self._size[0]}x{self._size[1]} {rate:.1f}/s delay {statistics.median(ordered):.0f} ms, "
            f"95 % {ordered[int(len(ordered) * 0.95)]} ms"
        )


def _now() -> int:
    return int(1e3 * time.monotonic()) % (1 << BITS)


def _time_in(picture: Picture) -> int:
    top = SIZE[0] / BITS / SIZE[1]
    levels = [picture.level((bit + 0.5) / BITS, top) for bit in range(BITS)]
    return sum(1 << bit for bit, level in enumerate(levels) if level > 128)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
