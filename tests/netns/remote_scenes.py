"""Scenes for test_remotes.py: two machines of a cloud on one network, and what happens when they no longer are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from rpc.api.client import ApiClient
from runtime.parts.remotes.life import DIRECT, THROUGH_CLOUD
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_certificates import Secured
from tests.e2e.cloud.test_machine import until
from tests.e2e.cloud.test_remotes_by_name import ARM, CLOUD, MOTOR, Near, arm, new_part
from tests.e2e.process import ready
from tests.e2e.server.process import Server
from tests.netns.internet import CLIENT, DEVICE, HERE, MACHINE, Internet, cables, name_hosts
from tests.netns.lan import ip
from tests.netns.peers.pairs import scene

CLOUD_NAME = "cloud.test"
PORT = 8090


@asynccontextmanager
async def machine(net: Internet, name: str, folder: Path, credentials: dict[str, str]) -> AsyncIterator[Server]:
    """Run machine-server on a computer."""
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240
    files = Server({"cloud": credentials}, folder)
    command = net.at(name, *files.words("-disable-mdns"))
    async with ready(command, files.log_file, env=files.environ, until="running\n") as (process, said):
        files.process = process
        files.take(said)
        yield files


class There(Near):
    """The machine that has the remote, on another computer: its status is read through the cloud."""

    def __init__(self, secured: Secured, part: str) -> None:
        self._secured = secured
        self._part = part

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ApiClient]:
        async with self._secured.client() as client:
            yield ApiClient(client._channel, metadata={"machine-part": self._part})


def separated(*names: str, apart: bool) -> None:
    """Let the switch pass no frames between these computers, or let it again; both always reach the cloud."""
    for name in names:
        ip("link", "set", name, "type", "bridge_slave", "isolated", "on" if apart else "off")


@scene
async def test_one_network_and_two(tmp_path: Path) -> None:
    async with cables() as net:
        address = net.addresses[HERE]
        name_hosts(tmp_path, f"{address} {CLOUD_NAME}")
        options = (*CLOUD, "--listen", f"{address}:{PORT}", "--url", f"https://{CLOUD_NAME}:{PORT}")
        async with cloud(tmp_path / "cloud", *options) as running:
            secured = Secured(running, tmp_path, host=CLOUD_NAME)
            secured.trust()
            document: dict[str, Any] = {**ARM, "network": {**ARM["network"], "bind_address": "0.0.0.0:8080"}}
            await secured.join(**document)
            credentials = await new_part(secured, "base", remotes=[arm(secured)])
            near = tmp_path / "near"
            near.mkdir()
            (near / "ca.pem").write_bytes(secured.authorities.read_bytes())
            async with (
                machine(net, MACHINE, tmp_path / "machine", secured.credentials),
                machine(net, CLIENT, near, credentials),
            ):
                base = There(secured, credentials["id"])
                await until(base.takes(DIRECT), "calls go directly")
                assert await base.path() == f"direct, at {net.addresses[MACHINE]}:8080"
                async with base.client() as client:
                    await client.call(MOTOR, "arm:left", "set_power", power_pct=0.5)
                separated(CLIENT, MACHINE, apart=True)
                seconds = await until(base.takes(THROUGH_CLOUD), "calls go through the cloud")
                print(f"through the cloud after {seconds:.1f} s")
                await trio.sleep(1)
                separated(CLIENT, MACHINE, apart=False)
                ip("address", "add", "203.0.113.77/24", "dev", DEVICE, prefix=net.at(CLIENT))
                seconds = await until(base.takes(DIRECT), "calls go directly again")
                print(f"directly after {seconds:.1f} s")
