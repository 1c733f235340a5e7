"""Compare a call to a module's resource through machine-server with a call to a resource in the server, a direct call
to the module, and a call through a minimal proxy on grpcio.aio.

`python -m bench.modules [--rounds 5] [--calls 600]`

The module uses the official SDK and answers DoCommand with the command; everything runs on this computer. Figures are
medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import trio
from grpclib.const import Cardinality

from rpc.api import messages
from rpc.client.channel import Channel

GENERIC = "/viam.component.generic.v1.GenericService/DoCommand"
SLAM = "/viam.service.slam.v1.SLAMService/DoCommand"
AT_ONCE = 16


class Way:
    """One way to call a resource: address, method and name."""

    def __init__(self, what: str, address: str, method: str, name: str) -> None:
        self.what = what
        self.address = address
        self.method = method
        self.name = name
        self.alone: list[float] = []  # seconds of a single call, median of each round
        self.many: list[float] = []  # calls per second with AT_ONCE in progress

    async def round(self, calls: int) -> None:
        common = messages.common()
        request = common.DoCommandRequest(name=self.name)
        request.command.update({"a": 1.5, "b": ["x", True]})
        async with Channel(self.address) as channel:

            async def call() -> None:
                async with channel.request(
                    self.method, Cardinality.UNARY_UNARY, common.DoCommandRequest, common.DoCommandResponse
                ) as stream:
                    await stream.send_message(request, end=True)
                    reply = await stream.recv_message()
                    assert reply.result["a"] == 1.5 or self.what.startswith("resource in"), reply

            async def loop(count: int) -> None:
                for _ in range(count):
                    await call()

            await loop(20)
            took = []
            for _ in range(calls):
                began = time.perf_counter()
                await call()
                took.append(time.perf_counter() - began)
            self.alone.append(statistics.median(took))
            began = time.perf_counter()
            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(loop, calls // AT_ONCE)
            self.many.append(calls // AT_ONCE * AT_ONCE / (time.perf_counter() - began))


def document(program: Path) -> dict[str, object]:
    return {
        "network": {"bind_address": "localhost:0"},
        "modules": [{"name": "bench", "executable_path": str(program)}],
        "components": [
            {"name": "here", "api": "rdk:component:generic", "model": "fake"},
            {"name": "known", "api": "rdk:component:generic", "model": "bench:module:known"},
        ],
        "services": [{"name": "unknown", "api": "rdk:service:slam", "model": "bench:module:unknown"}],
    }


def start_server(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start machine-server; return the process and its address."""
    program = folder / "run.sh"
    parts = Path(__file__).with_name("modules_parts.py")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {parts} "$@"\n')
    program.chmod(0o755)
    config = folder / "machine.json"
    config.write_text(json.dumps(document(program)))
    read, write = os.pipe()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "runtime.server.cli", "-disable-mdns", "-config", str(config)],
            stdout=log,
            stderr=log,
            pass_fds=[write],
            env={**os.environ, "MACHINE_READY_FD": str(write), "MACHINE_HOME": str(folder)},
        )
    os.close(write)
    with os.fdopen(read) as ready:
        address = ready.readline().split()[0]
        ready.readline()  # the line "running"
    return process, address


async def until_ready(address: str) -> None:
    """Wait until the module's resources answer."""
    for method, name in ((GENERIC, "known"), (SLAM, "unknown")):
        with trio.fail_after(30):
            while True:
                try:
                    await Way("", address, method, name).round(1)
                    break
                except Exception:
                    await trio.sleep(0.1)


def measure(rounds: int, calls: int) -> Sequence[Way]:
    with tempfile.TemporaryDirectory() as name:
        server, address = start_server(Path(name))
        proxy: subprocess.Popen[str] | None = None
        try:
            trio.run(until_ready, address)
            (child,) = psutil.Process(server.pid).children()
            socket = next(word for word in child.cmdline() if word.endswith(".sock"))
            command = [sys.executable, "-m", "bench.modules_parts", f"unix:{socket}"]
            proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert proxy.stdout is not None
            through = f"127.0.0.1:{proxy.stdout.readline().strip()}"
            ways = (
                Way("resource in the server", address, GENERIC, "here"),
                Way("directly to the module", f"unix:{socket}", GENERIC, "known"),
                Way("through machine-server, a built-in API", address, GENERIC, "known"),
                Way("through machine-server, an API of the module", address, SLAM, "unknown"),
                Way("through the grpcio.aio proxy", through, GENERIC, "known"),
            )
            for _ in range(rounds):
                for way in ways:
                    trio.run(partial(way.round, calls))
            return ways
        finally:
            if proxy is not None:
                proxy.kill()
                proxy.wait()
            server.terminate()
            server.wait()


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.modules")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=600)
    options = parser.parse_args(argv)
    ways = measure(options.rounds, options.calls)
    here, straight, built_in, own_api, proxy = (statistics.median(way.alone) * 1e6 for way in ways)
    print(f"{'':46} {'alone, µs':>10} {f'{AT_ONCE} concurrent, calls/s':>24}")
    for way in ways:
        print(f"{way.what:46} {statistics.median(way.alone) * 1e6:10.0f} {statistics.median(way.many):24.0f}")
    print(
        "module compared with a resource in the server: "
        f"{built_in / here:.2f} (built-in API), {own_api / here:.2f} (own API)"
    )
    hop = proxy - straight
    print(
        f"the hop alone, compared with grpcio.aio: {(built_in - straight) / hop:.2f}, {(own_api - straight) / hop:.2f}"
    )
    many = [statistics.median(way.many) for way in ways]
    print(f"concurrent calls/s, compared with grpcio.aio: {many[2] / many[4]:.2f}, {many[3] / many[4]:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
