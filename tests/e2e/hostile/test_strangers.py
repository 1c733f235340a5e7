"""1,000 connections without a key while the server may hold 1,024 descriptors: clients with a key keep working."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.http2.codec import frames
from tests.e2e.cloud.process import CloudProcess
from tests.e2e.process import ready

pytestmark = pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit(1) of util-linux is not installed")
DESCRIPTORS: Final = 1024
STRANGERS: Final = 1000
ROUNDS: Final = 5
ANSWER: Final = 10.0  # seconds; an answer takes milliseconds on a quiet computer
KEY: Final = ("11111111-2222-3333-4444-555555555555", "k" * 32)
LIMITED: Final = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", sys.executable, "-m")


@asynccontextmanager
async def machine(folder: Path) -> AsyncIterator[tuple[trio.Process, str, ApiKey, str]]:
    handlers = [{"type": "api-key", "config": {"keys": [KEY[0]], KEY[0]: KEY[1]}}]
    document = {"network": {"bind_address": "localhost:0"}, "auth": {"handlers": handlers}}
    (folder / "machine.json").write_text(json.dumps(document))
    command = [*LIMITED, "runtime.server.cli", "-config", str(folder / "machine.json"), "-disable-mdns"]
    async with ready(command, folder / "log", env={"MACHINE_HOME": str(folder / "home")}) as (process, said):
        yield process, said.split()[0], ApiKey(*KEY), "viam.robot.v1.RobotService/get_version"


@asynccontextmanager
async def cloud(folder: Path) -> AsyncIterator[tuple[trio.Process, str, ApiKey, str]]:
    command = [*LIMITED, "cloud.server.cli", "--data", str(folder / "data"), "--listen", "localhost:0"]
    async with ready(command, folder / "log") as (process, said):
        running = CloudProcess(process, said.split()[0], (folder / "log").read_text())
        yield process, running.address, ApiKey(*running.key), "viam.app.v1.AppService/list_organizations"


@pytest.mark.parametrize("served", [machine, cloud])
async def test_clients_with_a_key_keep_working(tmp_path: Path, served: object) -> None:
    async with AsyncExitStack() as stack:
        process, address, key, method = await stack.enter_async_context(served(tmp_path))  # type: ignore[operator]
        service, _, name = method.partition("/")
        old = await stack.enter_async_context(Channel(address, credentials=key))
        await call(old, service, name)
        host, _, port = address.rpartition(":")
        strangers = [await trio.open_tcp_stream(host, int(port)) for _ in range(STRANGERS)]
        for stream in strangers:
            stack.push_async_callback(stream.aclose)
            try:
                await stream.send_all(frames.PREFACE + frames.settings(()))
            except trio.BrokenResourceError:
                pass  # it was closed to make room for a later connection
        for _ in range(ROUNDS):
            await call(old, service, name)
            async with Channel(address, credentials=key) as new:
                await call(new, service, name)
        assert psutil.Process(process.pid).num_fds() < DESCRIPTORS / 2
        assert process.poll() is None


async def call(channel: Channel, service: str, name: str) -> None:
    with trio.fail_after(ANSWER):
        await ApiClient(channel).call(service, "", name)
