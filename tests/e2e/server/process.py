"""machine-server as a real process on a free loopback port, for tests on Trio."""

from __future__ import annotations

import os
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
from rpc.client import Channel
from tests.e2e.harness import START_LIMIT_S, STOP_LIMIT_S, Files


class Server(Files):
    """One running process; made by `server`."""

    process: trio.Process

    def descriptors(self) -> int:
        """Open file descriptors of the process."""
        return psutil.Process(self.process.pid).num_fds()

    def memory(self) -> int:
        """Resident bytes of the process."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and give the exit code."""
        self.process.send_signal(number)
        with trio.fail_after(STOP_LIMIT_S):
            return await self.process.wait()

    @asynccontextmanager
    async def client(self, metadata: Mapping[str, str] | None = None) -> AsyncIterator[ApiClient]:
        """A client over a connection of its own."""
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
    """Start machine-server, wait until its port is open, kill it at the end if it still runs.

    `program` is run instead of the usual entry point; `running` waits until everything was tried once.
    """
    found = Server(document, folder)
    read, write = os.pipe()
    try:
        with found.log_file.open("wb") as log:
            process = found.process = await trio.lowlevel.open_process(
                found.words(*options, program=program),
                stdout=log,
                stderr=log,
                pass_fds=[write],
                env=found.environment(write, env or {}),
            )
    finally:
        os.close(write)
    try:
        async with trio.lowlevel.FdStream(read) as ready:
            text = ""
            with trio.fail_after(START_LIMIT_S):
                async for part in ready:
                    text += part.decode()
                    if text.endswith("running\n" if running else "\n"):
                        break
            assert text, found.log()
            assert not running or text.endswith("running\n"), found.log()
            found.take(text)
            yield found
    finally:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run machine-server with options that make it end by itself."""
    command: Sequence[str] = [sys.executable, "-m", "runtime.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
