"""Machines that wait for callers at one cloud: `python -m bench waiting [--machines 1000] [--database sqlite]`.

Each has its push channel, as every machine, and one call of Answer, as those with WebRTC. The cloud, the push channels
and the calls of Answer are three processes on loopback, without TLS. One more machine answers calls through the cloud.
The longest pause of the cloud's event loop is not measured here: see `python -m bench largest`.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio
from grpclib.client import UnaryUnaryMethod
from grpclib.const import Cardinality
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from bench.cloud_process import Cost, Database, cloud, databases, free_port, load
from bench.propagation import new_part
from bench.rpc_servers import SERVICE
from bench.through import _until_connected, running
from cloud.domain.machines.machines import note_seen
from cloud.domain.machines.signalling import REPORTED
from cloud.store.commands import opened_for_command
from cloud.values.times import now
from rpc.access.credential_types import PART_SECRET
from rpc.api import messages
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.peers.dial import HOST
from runtime.parts.cloud.answering import ANSWER

SIGNALING: Final = "proto.rpc.webrtc.v1.SignalingService"
CREATING: Final = 16  # machines that are created at once
JOINING: Final = 20  # machines whose calls of Answer begin at once
IDLE: Final = 30.0  # seconds
CALLS: Final = 500
OFFERS: Final = 20


async def waiting_machines(url: str, *, stdin: trio.abc.ReceiveStream) -> None:
    """Wait for offers with the machines of the first line on stdin, and answer each; print a line when all wait."""
    text = b""
    while not text.endswith(b"\n"):
        text += await stdin.receive_some()
    places = trio.Semaphore(JOINING)
    async with trio.open_nursery() as nursery:
        parts = json.loads(text)
        for part, secret in parts:
            await places.acquire()
            await nursery.start(_machine, url, part, secret, places)
        for _ in range(JOINING):
            await places.acquire()
        print(len(parts), flush=True)


async def _machine(
    url: str, part: str, secret: str, places: trio.Semaphore, *, task_status: trio.TaskStatus[None]
) -> None:
    task_status.started()
    async with Channel(url, credentials=ApiKey(part, secret, type=PART_SECRET)) as channel:
        await channel.credential_headers()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_answer, channel, part)
            await trio.lowlevel.checkpoint()
            places.release()


async def _answer(channel: Channel, part: str) -> None:
    wire = messages.signaling()
    metadata = {HOST: part, "heartbeats-allowed": "true"}
    while True:
        async with channel.request(
            ANSWER, Cardinality.STREAM_STREAM, wire.AnswerResponse, wire.AnswerRequest, metadata=metadata
        ) as stream:
            await stream.send_request()
            async for message in stream:
                if message.WhichOneof("stage") == "init":
                    answer = partial(wire.AnswerResponse, uuid=message.uuid)
                    await stream.send_message(answer(init={"sdp": "answer"}))
                    await stream.send_message(answer(done={}), end=True)


@asynccontextmanager
async def answering(url: str, parts: Sequence[Sequence[str]]) -> AsyncIterator[None]:
    """Run this program as machines that wait for offers."""
    child = await trio.lowlevel.open_process(
        [sys.executable, "-m", "bench.waiting", "machines", url], stdin=-1, stdout=-1
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        await child.stdin.send_all(json.dumps(parts).encode() + b"\n")
        if not await child.stdout.receive_some():
            raise RuntimeError("the process with the machines has ended")
        yield
    finally:
        with trio.CancelScope(shield=True):
            child.kill()
            await child.wait()


async def created(client: ApiClient, location: str, count: int) -> list[list[str]]:
    """Create machines; return the ids and secrets of their parts."""
    parts: list[list[str]] = []

    async def some(numbers: range) -> None:
        for number in numbers:
            part = await new_part(client, location, f"m{number}")
            parts.append([part["id"], part["secret"]])

    async with trio.open_nursery() as nursery:
        for first in range(CREATING):
            nursery.start_soon(some, range(first, count, CREATING))
    return parts


async def measure(database: Database, count: int) -> None:
    """Measure and print all figures."""
    with tempfile.TemporaryDirectory() as name:
        port = free_port()
        async with cloud(Path(name), database, port) as cloud_process:
            facts, url = cloud_process.facts, f"http://{cloud_process.address}"
            key = (facts["key id"], facts["key"])
            async with AsyncExitStack() as stack:
                app = ApiClient(await stack.enter_async_context(Channel(url, credentials=ApiKey(*key))))
                parts = await created(app, facts["location"], count)
                target = await new_part(app, facts["location"], "target")
                cost = Cost(cloud_process, database)
                before = cost.memory
                simulator = await stack.enter_async_context(load(port))
                joined = await simulator("connect", parts=parts)
                followed = cost.memory
                begin = time.perf_counter()
                await stack.enter_async_context(answering(url, parts))
                answered = time.perf_counter() - begin
                idle = Cost(cloud_process, database)
                await trio.sleep(IDLE)
                print(
                    f"{database.name}, {count} machines: push channels after {joined['seconds']:.1f} s, "
                    f"{(followed - before) * 1024 / count:.0f} KiB each; calls of Answer after {answered:.1f} s, "
                    f"{(idle.memory - followed) * 1024 / count:.0f} KiB each; resident {idle.memory:.0f} MiB; "
                    f"idle {idle.percent():.2f} % of a core"
                )
                await stack.enter_async_context(running(url, target["id"], target["secret"], name))
                headers = (("machine-part", target["id"]),)
                through = await stack.enter_async_context(Channel(url, credentials=ApiKey(*key), headers=headers))
                first = await _until_connected(through)
                echo = UnaryUnaryMethod(through, f"/{SERVICE}/Echo", Request, Reply)
                calls = [await _timed(partial(echo, Request(host="hello"))) for _ in range(CALLS)]
                await _report_webrtc(Path(name), database, [part for part, _ in parts[:OFFERS]])
                offers = [await _timed(partial(_offered, app, parts[number][0])) for number in range(OFFERS)]
                print(
                    f"{database.name}, {count} machines: first call through the cloud {first:.0f} ms, "
                    f"then {_middle(calls)} ms; an offer is answered after {_middle(offers)} ms"
                )


async def _report_webrtc(folder: Path, database: Database, parts: Sequence[str]) -> None:
    """Store what machines with WebRTC report; the simulated push channels report nothing."""
    moment = now()
    async with opened_for_command(folder / "data" / "cloud.db", database.url) as store:
        for part in parts:
            await store.write(lambda sql, part=part: note_seen(sql, part, moment, {REPORTED: True}))  # type: ignore[misc]


async def _offered(app: ApiClient, part: str) -> None:
    client = ApiClient(app._channel, metadata={HOST: part})
    async with aclosing(client.stream(SIGNALING, "", "call", sdp="offer")) as replies:
        async for _ in replies:
            pass


async def _timed(call: Any) -> float:
    begin = time.perf_counter()
    await call()
    return 1e3 * (time.perf_counter() - begin)


def _middle(times: list[float]) -> str:
    """Return the median and the 99th percentile."""
    return f"{statistics.median(times):.2f} / {sorted(times)[int(0.99 * (len(times) - 1))]:.2f}"


def main(argv: Sequence[str]) -> int:
    logging.disable()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if argv[:1] == ["machines"]:
        trio.run(partial(waiting_machines, argv[1], stdin=trio.lowlevel.FdStream(0)))
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench waiting")
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    arguments = parser.parse_args(argv)
    with databases(arguments.database) as selected:
        trio.run(measure, selected[0], arguments.machines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
