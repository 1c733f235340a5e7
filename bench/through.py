"""Calls to a machine through the cloud, against direct calls: `python -m bench through [--rounds 3]`.

Cloud, machine and client are three processes on loopback, without TLS. The machine serves an echo service on a port and
through the cloud. Rounds alternate between both; each figure is the median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio
from grpclib.client import UnaryStreamMethod, UnaryUnaryMethod
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from bench.propagation import new_part, process
from bench.rpc_servers import SERVICE, Echo
from rpc.api.client import ApiClient
from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.http2.server import serve_http2
from runtime.parts.cloud.calls import CloudCalls
from schema.document.cloud import Cloud
from support.worker import Worker
from uplink.configuration import CloudSource
from uplink.dial import address_of

CALLS: Final = 1000
AT_ONCE: Final = 16
COUNT, SIZE = 400, 256 * 1024  # messages of a stream: 100 MiB
LARGE: Final = 8 << 20
LIMIT: Final = 30.0  # seconds for the machine to connect


async def machine(url: str, part: str, secret: str, folder: str) -> None:
    """Serve the echo service on a port, which is printed, and through the cloud."""
    own = {"id": part, "secret": secret, "app_address": url}
    address = address_of(Cloud(**own))
    calls, core = CloudCalls(address), ServerCore(Echo().__mapping__())
    source = CloudSource(address, json.dumps({"cloud": own}).encode(), Path(folder), Worker("cache"))
    source.answer_calls(calls.requested)

    async def serve(stream: trio.abc.Stream, caller: Identity) -> None:
        await serve_http2(stream, core, peer=Peer(("cloud",)), identity=caller)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(calls.run, serve)
        port = partial(trio.serve_tcp, partial(serve_http2, core=core), 0, host="127.0.0.1")
        listeners = await nursery.start(port)
        async with source.readings():
            print(listeners[0].socket.getsockname()[1], flush=True)
            await trio.sleep_forever()


@asynccontextmanager
async def running(*words: str) -> AsyncIterator[str]:
    """Run this program as a machine; yield its port."""
    async with trio.open_nursery() as nursery:
        command = [sys.executable, "-m", "bench.through", "machine", *words]
        child: trio.Process = await nursery.start(
            partial(trio.run_process, command, stdout=-1, check=False)  # -1: PIPE
        )
        assert child.stdout is not None
        said = b""
        while not said.endswith(b"\n"):
            said += await child.stdout.receive_some()
        yield said.decode().split()[-1]
        child.terminate()


async def figures(channel: Channel) -> dict[str, float]:
    """Return the figures of one round."""
    echo = UnaryUnaryMethod(channel, f"/{SERVICE}/Echo", Request, Reply)
    many = UnaryStreamMethod(channel, f"/{SERVICE}/Many", Request, Reply)
    request = Request(host="hello")
    for _ in range(50):
        await echo(request)
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        await echo(request)
        times.append(1e3 * (time.perf_counter() - begin))
    begin = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(_repeat, echo, request)
    rate = CALLS / (time.perf_counter() - begin)
    begin = time.perf_counter()
    async with many.open() as stream:
        await stream.send_message(Request(host=f"{COUNT},{SIZE}"), end=True)
        async for _ in stream:
            pass
    streamed = COUNT * SIZE / (time.perf_counter() - begin) / 1e6
    begin = time.perf_counter()
    await echo(Request(host="x" * LARGE))
    both = 2 * LARGE / (time.perf_counter() - begin) / 1e6
    return {
        "round trip, median, ms": statistics.median(times),
        "round trip, 99 %, ms": statistics.quantiles(times, n=100)[98],
        f"calls per second, {AT_ONCE} at once": rate,
        "stream of 256 KiB from the machine, MB/s": streamed,
        "8 MiB there and back, MB/s": both,
    }


async def _repeat(echo: Any, request: Request) -> None:
    for _ in range(CALLS // AT_ONCE):
        await echo(request)


async def measure(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return the figures of all rounds, by way and name."""
    taken: dict[str, dict[str, list[float]]] = {"direct": {}, "through the cloud": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "cloud.log"
        words = ("cloud.server.cli", "--data", str(folder / "data"), "--listen", "127.0.0.1:0")
        async with process(*words, log=log) as address:
            lines = dict(line.strip().rsplit("  ", 1) for line in log.read_text().splitlines() if line[:2] == "  ")
            facts = {key.strip(): value for key, value in lines.items()}
            key, url = ApiKey(facts["key id"], facts["key"]), f"http://{address}"
            async with Channel(url, credentials=key) as app:
                part = await new_part(ApiClient(app), facts["location"], "rover")
            async with running(url, part["id"], part["secret"], name) as port:
                headers = (("machine-part", part["id"]),)
                async with (
                    Channel(f"127.0.0.1:{port}") as direct,
                    Channel(url, credentials=ApiKey(facts["key id"], facts["key"]), headers=headers) as through,
                ):
                    first = await _until_connected(through)
                    for _ in range(rounds):
                        for way, channel in (("direct", direct), ("through the cloud", through)):
                            for figure, value in (await figures(channel)).items():
                                taken[way].setdefault(figure, []).append(value)
                    taken["through the cloud"]["first call, ms"] = [first]
                    taken["direct"]["first call, ms"] = [0.0]
    return taken


async def _until_connected(channel: Channel) -> float:
    """Return the milliseconds of the first call that the machine answers."""
    echo = UnaryUnaryMethod(channel, f"/{SERVICE}/Echo", Request, Reply)
    with trio.fail_after(LIMIT):
        while True:
            begin = time.perf_counter()
            try:
                await echo(Request(host="hello"))
            except GRPCError:
                await trio.sleep(0.1)
            else:
                return 1e3 * (time.perf_counter() - begin)


def main(argv: Sequence[str]) -> int:
    logging.disable()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if argv[:1] == ["machine"]:
        trio.run(machine, *argv[1:])
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench through")
    parser.add_argument("--rounds", type=int, default=3)
    taken = trio.run(measure, parser.parse_args(argv).rounds)
    for figure, values in taken["through the cloud"].items():
        direct = statistics.median(taken["direct"][figure])
        print(f"{figure:45} direct {direct:9.2f}   through the cloud {statistics.median(values):9.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
