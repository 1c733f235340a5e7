"""Measure the longest step of the event loop of machine-cloud for the largest input of each kind.

`python -m bench.largest [--rounds 3] [NAME ...]`

The cloud is in memory behind a port on loopback; the client is in the same process, and its steps do not count. Each
kind of input is sent `--rounds` times. The results of the best round are the longest step of the server's tasks in
processor time, which excludes other programs, and the largest delay of the loop, which includes threads and other
programs. Exits 1 if a step took more than 20 ms.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final

import trio
from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError

from cloud.server.app import SWITCH, freeze_loaded_objects
from cloud.server.memory import MemoryCloud, open_cloud
from rpc.access.credential_types import API_KEY
from rpc.api import messages
from rpc.call import ServerCore
from rpc.carrier import Identity
from rpc.client.channel import Channel
from rpc.limits import MIB, Limits
from rpc.network.listeners import open_listeners
from rpc.server.port import serve
from rpc.server.standard import http_and_json
from tests.watchdog import watched

BUDGET: Final = 0.020  # seconds
SAVE: Final = "/viam.app.v1.AppService/UpdateRobotPart"
READ: Final = "/viam.app.v1.AppService/GetRobotPart"
UPLOAD: Final = "/viam.app.datasync.v1.DataSyncService/DataCaptureUpload"
is_client: ContextVar[bool] = ContextVar("is_client", default=False)
EncodedCall = tuple[str, bytes]
"""The path and message of a call."""


class Raw(bytes):
    """An encoded message, or a reply that is not decoded."""

    @classmethod
    def FromString(cls, data: bytes) -> Raw:
        """Return the reply undecoded."""
        return cls(data)

    def SerializeToString(self) -> bytes:
        """Return the message."""
        return self


class Steps(trio.abc.Instrument):
    """Measures the longest step of all tasks except the client's."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._begin = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note when a step of a task begins."""
        self._begin = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Record a step that has ended."""
        if not task.context.get(is_client, False):
            self.longest = max(self.longest, time.thread_time() - self._begin)


def part(part_id: str, document: dict[str, Any]) -> EncodedCall:
    """Save a configuration as a structure."""
    request = messages.load("app.v1.app_pb2").UpdateRobotPartRequest(id=part_id, name="p-main")
    request.robot_config.update(document)
    return SAVE, request.SerializeToString()


def part_text(part_id: str, document: dict[str, Any]) -> EncodedCall:
    """Save a configuration as text."""
    request = messages.load("app.v1.app_pb2").UpdateRobotPartRequest(id=part_id, name="p-main")
    request.robot_config_json = json.dumps(document)
    return SAVE, request.SerializeToString()


def read(part_id: str) -> EncodedCall:
    """Read the last saved configuration."""
    return READ, messages.load("app.v1.app_pb2").GetRobotPartRequest(id=part_id).SerializeToString()


def upload(part_id: str, contents: bytes, kind: int) -> EncodedCall:
    """Upload captured data."""
    request = messages.load("app.datasync.v1.data_sync_pb2").DataCaptureUploadRequest()
    request.metadata.part_id, request.metadata.type = part_id, kind
    return UPLOAD, request.SerializeToString() + contents


def readings(count: int) -> bytes:
    """Encode `count` readings."""
    request = messages.load("app.datasync.v1.data_sync_pb2").DataCaptureUploadRequest()
    for number in range(count):
        reading = request.sensor_contents.add()
        reading.metadata.time_requested.seconds = 1_700_000_000 + number
        reading.struct["readings"] = number
    data: bytes = request.SerializeToString()
    return data


def file(size: int) -> bytes:
    """Encode a file of `size` bytes."""
    request = messages.load("app.datasync.v1.data_sync_pb2").DataCaptureUploadRequest()
    request.sensor_contents.add().binary = bytes(size)
    data: bytes = request.SerializeToString()
    return data


ENTRIES: Final = [
    {"name": f"c{number}", "attributes": {"values": [1.5] * 13, "text": "x" * 1800}} for number in range(1900)
]
KINDS: Final[dict[str, Callable[[str], EncodedCall]]] = {
    "structure of 1,900 resources, 3.6 MiB": lambda server: part(server, {"components": ENTRIES}),
    "reading it": read,
    "text of 1,900 resources, 3.6 MiB": lambda server: part_text(server, {"components": ENTRIES}),
    "structure of 39,000 keys": lambda server: part(
        server, {"x": {f"key{number}": number for number in range(39_000)}}
    ),
    "structure of 300,000 keys": lambda server: part(server, {f"key{number}": number for number in range(300_000)}),
    "structure of 700,000 numbers": lambda server: part(server, {"x": [1] * 700_000}),
    "4,000,000 empty values": lambda server: upload(server, b"\x12\x00" * 4_000_000, 2),
    "20,000 readings": lambda server: upload(server, readings(20_000), 2),
    "file of 32 MiB": lambda server: upload(server, file(32 * MIB), 1),
    "file of 60 MiB": lambda server: upload(server, file(60 * MIB), 1),
}


@asynccontextmanager
async def port_of(cloud: MemoryCloud) -> AsyncIterator[str]:
    """Serve the cloud with the rights of the owner, without login; yield the address."""
    router = cloud.router
    core = ServerCore(
        router,
        authorize=lambda method, metadata: Identity(cloud.first.id, API_KEY),
        limits=Limits(max_message=8 * MIB),
        messages={UPLOAD: 64 * MIB},
        offload=router.in_room,
    )
    core.gateway = lambda otherwise: http_and_json(core, router.names, otherwise)
    async with trio.open_nursery() as nursery:
        listeners = await open_listeners("127.0.0.1:0")
        await nursery.start(serve, listeners, core)
        yield f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def measure(address: str, encoded: EncodedCall) -> tuple[float, float, str]:
    """Make a call; return the longest step, the largest delay of the loop, and the answer."""
    path, data = encoded
    answer = "OK"
    is_client.set(True)
    steps = Steps()
    async with (
        Channel(address, limits=Limits(max_message=64 * MIB, max_buffered=96 * MIB)) as channel,
        watched() as loop,
    ):
        await trio.sleep(0.1)
        trio.lowlevel.add_instrument(steps)
        try:
            call = channel.request(path, Cardinality.UNARY_UNARY, Raw, Raw, timeout=300)
            async with call as stream:
                await stream.send_message(Raw(data), end=True)
                await stream.recv_message()
        except GRPCError as error:
            answer = f"{error.status.name}: {error.message}"[:60]
        finally:
            trio.lowlevel.remove_instrument(steps)
    return steps.longest, loop.longest, answer


async def run(rounds: int, names: list[str]) -> int:
    """Print a line for each kind; return the exit code."""
    worst = 0.0
    async with open_cloud() as cloud:
        location = cloud.first.location
        machine = await cloud.app("new_robot", name="p", location=location)
        (machine_part,) = await cloud.app("get_robot_parts", robot_id=machine)
        part_id = machine_part["id"]
        async with port_of(cloud) as address:
            await measure(address, read(part_id))  # performs one-time initialization
            await measure(address, upload(part_id, readings(1), 2))
            freeze_loaded_objects()
            for name, make in KINDS.items():
                if names and not any(word in name for word in names):
                    continue
                encoded = make(part_id)
                results = [await measure(address, encoded) for _ in range(rounds)]
                step, late, answer = min(results)
                worst = max(worst, step)
                print(f"{name:40} step {step * 1e3:6.1f} ms  late {late * 1e3:6.1f} ms  {answer}", flush=True)
    print(f"the longest step: {worst * 1e3:.1f} ms (at most {BUDGET * 1e3:.0f})")
    return int(worst > BUDGET)


def main(argv: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="bench.largest", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(argv)
    sys.setswitchinterval(SWITCH)
    return trio.run(run, options.rounds, options.names)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
