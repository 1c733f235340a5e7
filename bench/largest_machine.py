"""Measure the longest step of the event loop of machine-server for the largest input and output of each kind.

`python -m bench.largest_machine [--rounds 3] [NAME ...]`

Like bench.largest, for a machine in memory with a port as in a real process: requests of clients by gRPC and by HTTP
with JSON, and answers of drivers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import trio

from bench.largest import BUDGET, Steps, is_client, measure
from engine.components.generic import Generic
from engine.components.media.camera import Camera, Image, Images
from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Extra
from models import BUILTIN
from rpc.api import messages
from rpc.api.gateway import MAX_BODY, MAX_REPLY
from rpc.limits import MIB
from runtime.server.memory import open_machine
from runtime.server.port.serving import Listening
from schema.document.network import Network
from schema.names import Model
from tests.watchdog import watched

MODEL: Final = "bench:largest:many"
DO: Final = "/viam.component.generic.v1.GenericService/DoCommand"
READ: Final = "/viam.component.sensor.v1.SensorService/GetReadings"
IMAGES: Final = "/viam.component.camera.v1.CameraService/GetImages"


class Echo(Generic):
    """Answers every command with an empty reply."""

    async def do_command(self, command: Mapping[str, Any], *, timeout: float | None = None) -> Mapping[str, Any]:
        """Return the command."""
        await trio.lowlevel.checkpoint()
        return {}


class Many(Sensor):
    """A sensor whose name contains the number of values in its readings."""

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Return readings by name, in units that the driver documents; put the unit in the name (`temperature_c`)."""
        await trio.lowlevel.checkpoint()
        return {"values": [1.5] * int(self.name.name.removeprefix("n"))}


class Pictures(Camera):
    """A camera whose name contains the size of its images in MiB."""

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """Take an image with each sensor in `filter_source_names` (empty: all sensors) at the same time."""
        await trio.lowlevel.checkpoint()
        return Images([Image(bytes(int(self.name.name.removeprefix("m")) * MIB))])


def component(api: str, name: str) -> dict[str, Any]:
    """Return an entry of the configuration."""
    return {"name": name, "api": f"rdk:component:{api}", "model": MODEL}


def command(count: int) -> bytes:
    """Encode a command with `count` numbers."""
    request = messages.load("common.v1.common_pb2").DoCommandRequest(name="g")
    request.command["x"] = [1.5] * count
    data: bytes = request.SerializeToString()
    return data


def reading(name: str) -> bytes:
    """Encode a request for the readings of a sensor, or the images of a camera."""
    data: bytes = messages.load("common.v1.common_pb2").GetReadingsRequest(name=name).SerializeToString()
    return data


async def by_http(address: str, method: str, path: str, body: bytes = b"") -> tuple[float, float, str]:
    """Measure a request by HTTP with JSON; see `bench.largest.measure`."""
    is_client.set(True)
    steps = Steps()
    host, _, port = address.rpartition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream, watched() as loop:
        await trio.sleep(0.1)
        trio.lowlevel.add_instrument(steps)
        try:
            fields = f"host: {address}", f"content-length: {len(body)}", "connection: close"
            await stream.send_all("\r\n".join((f"{method} {path} HTTP/1.1", *fields, "", "")).encode() + body)
            answer = bytearray()
            async for data in stream:
                answer += data
        finally:
            trio.lowlevel.remove_instrument(steps)
    return steps.longest, loop.longest, f"{bytes(answer[9:12]).decode()}, {len(answer) >> 10} KiB"


Measured = Callable[[str], Awaitable[tuple[float, float, str]]]
ROUTE: Final = "/viam/api/v1/component"
KINDS: Final[dict[str, Measured]] = {
    "JSON of 256 KiB: numbers": partial(
        by_http,
        method="POST",
        path=f"{ROUTE}/generic/g/do_command",
        body=json.dumps({"command": {"x": [1] * (MAX_BODY // 3 - 20)}}).encode(),
    ),
    "JSON of 256 KiB: a text": partial(
        by_http,
        method="POST",
        path=f"{ROUTE}/generic/g/do_command",
        body=json.dumps({"command": {"x": "y" * (MAX_BODY - 100)}}).encode(),
    ),
    "JSON reply of 256 KiB": partial(by_http, method="GET", path=f"{ROUTE}/sensor/n{MAX_REPLY // 12}/readings"),
    "JSON reply of 2 MiB, refused": partial(by_http, method="GET", path=f"{ROUTE}/sensor/n200000/readings"),
    "JSON reply with a picture of 16 MiB": partial(by_http, method="GET", path=f"{ROUTE}/camera/m16/images"),
    "command of 256 KiB": lambda address: measure(address, (DO, command(MAX_BODY // 11))),
    "command of 4 MiB": lambda address: measure(address, (DO, command(4 * MIB // 11))),
    "readings of 256 KiB": lambda address: measure(address, (READ, reading(f"n{MAX_REPLY // 11}"))),
    "readings of 4 MiB": lambda address: measure(address, (READ, reading(f"n{4 * MIB // 11}"))),
    "picture of 16 MiB": lambda address: measure(address, (IMAGES, reading("m16"))),
    "picture of 30 MiB": lambda address: measure(address, (IMAGES, reading("m30"))),
}


async def run(rounds: int, names: list[str]) -> int:
    """Print a line for each kind; return the exit code."""
    worst = 0.0
    registry = Registry(BUILTIN)
    for cls in (Echo, Many, Pictures):
        registry.add(cls.API, Model.parse(MODEL), cls)
    sensors = [f"n{count}" for count in (MAX_REPLY // 12, MAX_REPLY // 11, 4 * MIB // 11, 200_000)]
    document = {
        "components": [
            component("generic", "g"),
            *(component("sensor", name) for name in sensors),
            *(component("camera", name) for name in ("m16", "m30")),
        ]
    }
    async with open_machine(document, registry=registry) as memory:
        await memory.graph.settled()
        listening = Listening(memory.serving, Network(), "127.0.0.1:0", None)
        async with trio.open_nursery() as nursery:
            (address,) = await nursery.start(lambda task_status: listening({}, task_status=task_status))
            await KINDS["command of 256 KiB"](address)  # performs one-time initialization
            await KINDS["JSON reply of 256 KiB"](address)
            for name, kind in KINDS.items():
                if names and not any(text in name for text in names):
                    continue
                step, late, answer = min([await kind(address) for _ in range(rounds)])
                worst = max(worst, step)
                print(f"{name:40} step {step * 1e3:6.1f} ms  late {late * 1e3:6.1f} ms  {answer}", flush=True)
            nursery.cancel_scope.cancel()
    print(f"the longest step: {worst * 1e3:.1f} ms (at most {BUDGET * 1e3:.0f})")
    return int(worst > BUDGET)


def main(argv: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="bench.largest_machine", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(argv)
    return trio.run(run, options.rounds, options.names)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
