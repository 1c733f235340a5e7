"""machine-server as a real process on a free loopback port."""

from __future__ import annotations

import json
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

START_LIMIT = 60.0  # generous: the machine that runs the tests may be busy


class Server:
    """One running process."""

    def __init__(self, process: trio.Process, config: Path, log: Path, address: str) -> None:
        self.process = process
        self.config = config
        self._log = log
        self.address = address

    def write(self, document: Mapping[str, Any] | bytes) -> None:
        """Replace the configuration file atomically, as editors and agents do."""
        new = self.config.with_suffix(".new")
        new.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        os.replace(new, self.config)

    def log(self) -> str:
        """Everything logged so far."""
        return self._log.read_text()

    def descriptors(self) -> int:
        """Open file descriptors of the process."""
        return psutil.Process(self.process.pid).num_fds()

    def memory(self) -> int:
        """Resident bytes of the process."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and give the exit code."""
        self.process.send_signal(number)
        with trio.fail_after(START_LIMIT):
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
    config, log = folder / "machine.json", folder / "server.log"
    config.write_text(json.dumps({"network": {"bind_address": "localhost:0"}, **document}))
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        with log.open("wb") as output:
            process = await trio.lowlevel.open_process(
                [
                    sys.executable,
                    *(["-c", program] if program else ["-m", "runtime.cli"]),
                    "-config",
                    str(config),
                    *options,
                ],
                stdout=output,
                stderr=output,
                pass_fds=[write],
                env={
                    **os.environ,
                    "MACHINE_HOME": str(folder / "home"),
                    "MACHINE_READY_FD": str(write),
                    **(env or {}),
                },
            )
    finally:
        os.close(write)
    try:
        async with trio.lowlevel.FdStream(read) as ready:
            text = ""
            with trio.fail_after(START_LIMIT):
                async for part in ready:
                    text += part.decode()
                    if not running or text.endswith("running\n"):
                        break
            assert text, log.read_text()
            assert not running or text.endswith("running\n"), log.read_text()
            yield Server(process, config, log, text.split()[0])
    finally:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run machine-server with options that make it end by itself."""
    command: Sequence[str] = [sys.executable, "-m", "runtime.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
