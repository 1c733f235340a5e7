"""machine-cloud as a real process on a free loopback port."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from tests.e2e.harness import STOP_LIMIT_S
from tests.e2e.process import ready


class CloudProcess:
    """A running process, and its owner's key, if this start printed one."""

    def __init__(self, process: trio.Process, address: str, said: str) -> None:
        self.process = process
        self.address = address
        words = dict(line.strip().rsplit("  ", 1) for line in said.splitlines() if line.startswith("  "))
        self.facts = {name.strip(): value for name, value in words.items()}

    @property
    def key(self) -> tuple[str, str]:
        return self.facts["key id"], self.facts["key"]

    @asynccontextmanager
    async def client(self, key: tuple[str, str] | None = None) -> AsyncIterator[ApiClient]:
        """Yield a client that uses a key, by default the owner's."""
        async with Channel(self.address, credentials=ApiKey(*(key or self.key))) as channel:
            yield ApiClient(channel)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        with trio.fail_after(STOP_LIMIT_S):
            return await self.process.wait()


@asynccontextmanager
async def cloud(
    folder: Path, *options: str, module: str = "cloud.server.cli", environ: Mapping[str, str] | None = None
) -> AsyncIterator[CloudProcess]:
    """Run machine-cloud in `folder`; yield it when its port is open; kill it at the end if it runs.

    Its path of the data is relative, as by default, so that every test notices where a program or child needs another.
    """
    os.makedirs(folder, exist_ok=True)
    log = folder / "cloud.log"
    command = [sys.executable, "-m", module, "--data", "data", "--listen", "localhost:0", *options]
    async with ready(command, log, env=environ, cwd=folder) as (process, said):
        yield CloudProcess(process, said.split()[0], log.read_text())
