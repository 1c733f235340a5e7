"""machine-server in the guest, reached from the host as clients reach any machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from signal import SIGKILL, SIGTERM
from typing import Any, Final

import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from tests.hil.rig.channel import GuestProcess
from tests.hil.rig.guest import Guest
from tests.hil.rig.sdk import Sdk, open_sdk

START_LIMIT: Final = 120.0  # seconds; about 1 on a quiet computer, 5 for the first in a guest
STOP_LIMIT: Final = 60.0


class Server:
    """A running machine-server. `address` reaches it from the host; `log` is everything it has logged."""

    def __init__(self, guest: Guest, process: GuestProcess, config: str, network: Mapping[str, Any], port: int) -> None:
        self.guest = guest
        self.process = process
        self.config = config
        self.port = port
        self._network = network

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self.process.stderr

    async def write(self, document: Mapping[str, Any]) -> None:
        """Replace the configuration file atomically; the server notices the change itself."""
        await write_document(self.guest, self.config, {**document, "network": self._network})

    async def wait_log(self, pattern: str, count: int = 1) -> None:
        """Return once the log has `count` matches of the regular expression; bound it with a cancel scope."""
        while len(re.findall(pattern, self.log)) < count:
            await self.process.wait_change()

    async def signal(self, number: int) -> None:
        """Send a signal to the server process only."""
        await self.process.signal(number, group=False)

    async def stop(self, number: int = SIGTERM) -> int:
        """Send a signal, wait until the server ends, and return its exit status (negative for a signal)."""
        await self.signal(number)
        with trio.fail_after(STOP_LIMIT):
            return await self.process.wait()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ApiClient]:
        """Yield our own client with a connection of its own."""
        async with Channel(self.address) as channel:
            yield ApiClient(channel)

    @asynccontextmanager
    async def sdk(self) -> AsyncIterator[Sdk]:
        """Yield the official Python SDK: `await sdk(Sensor.from_robot(sdk.robot, "t").get_readings())`."""
        async with open_sdk(self.address) as sdk:
            yield sdk


def network(port: int = 8080) -> dict[str, str]:
    """Return the section `network` of a machine that the host can reach."""
    return {"bind_address": f"0.0.0.0:{port}"}


async def write_document(guest: Guest, path: str, document: Mapping[str, Any]) -> None:
    """Write a configuration as editors and agents do: to a temporary file, then renamed."""
    await guest.write(f"{path}.new", json.dumps(document))
    await guest.run(["mv", f"{path}.new", path])


@asynccontextmanager
async def open_server(
    guest: Guest,
    document: Mapping[str, Any] | None,
    *options: str,
    config: str = "",
    hardware: str = "linux",
    user: str = "",
    env: Mapping[str, str] | None = None,
    port: int = 8080,
    running: bool = True,
) -> AsyncIterator[Server]:
    """Run machine-server with `document`; with `running`, every resource has been tried once when the block begins.

    At the end of the block it is stopped with SIGTERM and must exit with status 0; it is killed if the block fails.
    `user` runs it with another account of the guest. Its port in the guest is `port`, which an existing document in the
    file `config` (then `document` is None) must name: `"network": network(port)`.
    """
    folder = f"/tmp/server-{os.urandom(3).hex()}"
    await guest.run(f"mkdir {folder} && chmod 777 {folder}")
    config = config or f"{folder}/machine.json"
    section = {**network(port), **(document or {}).get("network", {})}
    if document is not None:
        await write_document(guest, config, {**document, "network": section})
    process = await guest.start(
        ["machine-server", "-config", config, "-hardware", hardware, *options],
        user=user,
        cwd=folder,
        env={"MACHINE_READY_FD": "3", **(env or {})},
        descriptors=(0, 2, 2, 1),
    )
    forwarded = await guest.forward(port)
    server = Server(guest, process, config, section, forwarded)
    try:
        with trio.fail_after(START_LIMIT):
            await process.wait_output("running\n" if running else "\n")
        yield server
        if process.returncode is None and not guest.channel.closed:
            status = await server.stop()
            assert status == 0, f"machine-server ended with {status}:\n{server.log}"
    except BaseException:
        print(f"machine-server said:\n{server.log}")
        raise
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_LIMIT):
            if not guest.channel.closed:
                if process.returncode is None:
                    await process.stop(SIGKILL)
                await guest.unforward(forwarded)
