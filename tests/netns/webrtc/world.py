"""A cloud, a machine without a reachable port and clients, on the Internet of the scenes."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from cloud.domain.machines.ice import VARIABLE as SECRET_VARIABLE
from rpc.api.client import ApiClient
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.test_machine import APP
from tests.e2e.process import ready
from tests.e2e.server.process import Server
from tests.netns.internet import CLIENT, HERE, MACHINE, SECRET, Internet, cables, internet, name_hosts, turn
from tests.netns.webrtc.sdk import Sdk, sdk

PORT: Final = 8090
LOCAL: Final = "machine.test"
DOMAIN: Final = "machines.test"
CONFIGURATION: Final[Mapping[str, Any]] = {
    "components": [
        {"name": "a", "api": "rdk:component:sensor", "model": "fake"},
        {"name": "echo", "api": "rdk:component:generic", "model": "fake"},
        {"name": "ears", "api": "rdk:component:audio_in", "model": "fake", "attributes": {"tone_hz": 330}},
        {"name": "eye", "api": "rdk:component:camera", "model": "fake", "attributes": {"width": 640, "height": 480}},
        {"name": "wheel", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": 100}},
    ],
    "disable_log_deduplication": True,
    "network": {"sessions": {"heartbeat_window": "2s"}},
}

_CONNECTED: Final = re.compile(r'a client has connected\t.*"local":"(\w+)","remote":"(\w+)"')


def scene_within(seconds: float) -> Callable[[Callable[[Path], Awaitable[None]]], Callable[[Path], None]]:
    """Make a test that takes `seconds` at most, see `pairs.scene`."""

    def decorate(function: Callable[[Path], Awaitable[None]]) -> Callable[[Path], None]:
        def test(tmp_path: Path) -> None:
            async def limited() -> None:
                with trio.fail_after(seconds):
                    await function(tmp_path)

            trio.run(limited)

        return test

    return decorate


class World:
    """The running programs; created by `world`."""

    def __init__(self, folder: Path, net: Internet, running: CloudProcess, client: ApiClient, part: Any) -> None:
        self.folder = folder
        self.net = net
        self.cloud = running
        self.client = client
        self.part: str = part["id"]
        self.secret: str = part["secret"]
        self.machine: Server
        self.options: list[str] = []

    @property
    def cloud_url(self) -> str:
        """URL of the cloud."""
        return f"http://{self.cloud.address}"

    @property
    def host(self) -> str:
        """Name and port at which clients dial the machine; they lead to the cloud."""
        return f"rover-{self.part}.{DOMAIN}:{PORT}"

    @asynccontextmanager
    async def sdk(self) -> AsyncIterator[Sdk]:
        """Run a client with the official SDK on its computer."""
        async with sdk(self.net.at(CLIENT), self.folder / "sdk.log") as client:
            yield client

    async def output(self, name: str, *command: str) -> str:
        """Run a command on a computer to its end, and return its output."""
        words = self.net.at(name, *command)
        done = await trio.run_process(words, capture_stdout=True, capture_stderr=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()[-6000:]
        return done.stdout.decode()

    async def dial(self, client: Sdk, **options: Any) -> Any:
        """Connect a client by the default dial, with the owner's key if the options have no other."""
        return await client("connect", **{"host": self.host, "key": self.cloud.key, **options})

    @asynccontextmanager
    async def run_machine(self, *options: str) -> AsyncIterator[Server]:
        """Run machine-server on its computer, where it only listens on loopback."""
        folder = self.folder / "machine"
        folder.mkdir(exist_ok=True)
        credentials = {"id": self.part, "secret": self.secret, "app_address": self.cloud_url}
        files = Server({"cloud": credentials}, folder)
        command = self.net.at(MACHINE, *files.words("-disable-mdns", "-allow-insecure-creds", *options))
        async with ready(command, files.log_file, env=files.environ, until="running\n") as (process, said):
            files.process = process
            files.take(said)
            yield files

    @property
    def machine_address(self) -> str:
        """Name and port of the machine itself."""
        return f"{LOCAL}:{self.machine.port}"

    def paths(self) -> list[tuple[str, str]]:
        """Return the types of both candidates of each connection, the machine first, in the order of connecting."""
        return [(line[1], line[2]) for line in _CONNECTED.finditer(self.machine.log())]

    @asynccontextmanager
    async def restarted_cloud(self) -> AsyncIterator[None]:
        """Run the cloud, which must have ended, again."""
        async with cloud(self.folder / "cloud", *self.options, environ={SECRET_VARIABLE: SECRET}):
            yield

    async def operator_key(self) -> tuple[str, str]:
        """Create another key that may use the machine."""
        facts = self.cloud.facts
        grant = {"authorization_id": "organization_operator", "resource_type": "organization"}
        grant["resource_id"] = facts["organization"]
        created = await self.client.call(APP, "", "create_key", authorizations=[grant], name="operator")
        return created["id"], created["key"]

    def log(self) -> str:
        """Return the last lines of all logs, for messages of failures."""
        names = ("cloud/cloud.log", "machine/server.log", "sdk.log", "turn.log")
        return "\n".join(f"==> {name}\n{_tail(self.folder / name)}" for name in names)


def _tail(file: Path) -> str:
    return "\n".join(file.read_text("utf-8", "replace").splitlines()[-25:]) if file.exists() else "(none)"


@asynccontextmanager
async def world(
    folder: Path,
    *servers: str,
    version: int = 4,
    nat: bool = True,
    cabled: bool = False,
    relay: bool = False,
    switches: Sequence[str] = (),
    **document: Any,
) -> AsyncIterator[World]:
    """Start all programs; `servers` are STUN and TURN servers for clients, which `relay` starts.

    Computers are joined by the router, or `cabled`. `switches` are options of machine-server, and
    `document` is added to its configuration.
    """
    async with cables() if cabled else internet(version=version, nat=nat) as net:
        address = net.addresses[HERE]
        authority = f"[{address}]:{PORT}" if ":" in address else f"{address}:{PORT}"
        options = ["--listen", authority, "--machine-domain", DOMAIN]
        for server in servers:
            options += ["--ice-server", server]
        with ExitStack() as stack:
            if relay:
                stack.enter_context(turn(folder))
            environ = {SECRET_VARIABLE: SECRET}
            async with cloud(folder / "cloud", *options, environ=environ) as running, running.client() as client:
                robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
                part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
                created = World(folder, net, running, client, part)
                created.options = options
                text = json.dumps({**CONFIGURATION, **document})
                await client.call(APP, "", "update_robot_part", id=created.part, name="", robot_config_json=text)
                name_hosts(folder, f"{address} {created.host.partition(':')[0]}", f"{net.addresses[MACHINE]} {LOCAL}")
                async with created.run_machine(*switches) as created.machine:
                    try:
                        yield created
                    except Exception as error:
                        error.add_note(created.log())
                        raise
