"""machine-server as a real process on a free loopback port, for tests on Trio."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from tests.e2e.harness import STOP_LIMIT_S, Files
from tests.e2e.process import ready


class Server(Files):
    """A running process; created by `server`."""

    process: trio.Process

    def descriptors(self) -> int:
        """Return the number of open file descriptors of the process."""
        return psutil.Process(self.process.pid).num_fds()

    def memory(self) -> int:
        """Return the resident bytes of the process."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        with trio.fail_after(STOP_LIMIT_S):
            return await self.process.wait()

    @asynccontextmanager
    async def client(self, metadata: Mapping[str, str] | None = None) -> AsyncIterator[ApiClient]:
        """Yield a client with a separate connection."""
        async with Channel(self.address) as channel:
            yield ApiClient(channel, metadata=metadata)


@asynccontextmanager
async def server(
    folder: Path,
    document: Mapping[str, Any],
    *options: str,
    program: str = "",
    running: bool = False,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Server]:
    """Run machine-server; yield it when its port is open, and kill it at the end if it still runs.

    It runs in `folder` with relative paths, so that every test notices where a program or child needs others.
    `program` is run instead of the usual entry point; `running` waits for the first attempt to start every resource.
    """
    machine = Server(document, folder)
    command = [
        machine.config.name if word == str(machine.config) else word
        for word in machine.words(*options, program=program)
    ]
    environ = {**machine.environ, "MACHINE_HOME": "home", **(env or {})}
    until = "running\n" if running else "\n"
    async with ready(command, machine.log_file, env=environ, until=until, cwd=folder) as (process, said):
        machine.process = process
        machine.take(said)
        yield machine


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run machine-server with options that make it exit on its own."""
    command: Sequence[str] = [sys.executable, "-m", "runtime.server.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
