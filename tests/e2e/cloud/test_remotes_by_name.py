"""A machine uses another one of its cloud by its host name, with everything as a process and no DNS for that name."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from rpc.access.credential_types import API_KEY
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from runtime.parts.remotes.life import DIRECT, THROUGH_CLOUD
from schema.errors import MachineError
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_certificates import Secured
from tests.e2e.cloud.test_machine import APP, until
from tests.e2e.server.process import Server, server

DOMAIN = "machines.test"
MOTOR, ROBOT = "rdk:component:motor", "viam.robot.v1.RobotService"
CLOUD = ("--tls", "--machine-domain", DOMAIN)
ARM = {
    "components": [{"name": "left", "api": MOTOR, "model": "fake"}],
    "network": {"bind_address": "127.0.0.1:0", "sessions": {"heartbeat_window": "2s"}},
}


async def new_part(secured: Secured, name: str, **document: Any) -> dict[str, str]:
    """Create a machine and return the credentials of its part."""
    async with secured.client() as client:
        robot = await client.call(APP, "", "new_robot", name=name, location=secured.running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(document))
    return {**secured.credentials, "id": part["id"], "secret": part["secret"]}


def arm(secured: Secured, host: str = DOMAIN) -> dict[str, Any]:
    """Return the entry of the remote, which is the machine of `secured`."""
    entity, payload = secured.running.key
    auth = {"entity": entity, "credentials": {"type": API_KEY, "payload": payload}}
    dotted = f".{host}" if host else ""
    address = f"rover-{secured.credentials['id']}{dotted}"
    return {"name": "arm", "address": address, "auth": auth, "reconnect_interval": "100ms"}


class Near:
    """The machine that has the remote."""

    def __init__(self, machine: Server, key: tuple[str, str]) -> None:
        self._machine = machine
        self._key = key

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ApiClient]:
        async with Channel(self._machine.address, credentials=ApiKey(*self._key)) as channel:
            yield ApiClient(channel)

    async def path(self, name: str = "arm") -> str:
        """Return the path of calls to the remote, as the status shows it; "" while there is none."""
        async with self.client() as client:
            _, metadata = await client.call_with_metadata(ROBOT, "", "get_machine_status")
        paths: dict[str, str] = json.loads(metadata["machine-facts"]).get("paths", {})
        return paths.get(f"rdk-internal:remote:machine/{name}", "")

    def takes(self, path: str, name: str = "arm") -> Callable[[], Awaitable[bool]]:
        """Return a check that calls to the remote arrive and take `path`."""

        async def check() -> bool:
            try:
                async with self.client() as client:
                    await client.call(MOTOR, f"{name}:left", "is_moving")
                return (await self.path(name)).startswith(f"{path}, at ")
            except MachineError:
                return False

        return check

    async def stays_direct(self, seconds: float) -> None:
        end = trio.current_time() + seconds
        while trio.current_time() < end:
            assert await self.takes(DIRECT)()
            await trio.sleep(0.2)


@asynccontextmanager
async def near(secured: Secured, folder: Path, credentials: dict[str, str]) -> AsyncIterator[Near]:
    """Run the machine that has the remote."""
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240
    (folder / "ca.pem").write_bytes(secured.authorities.read_bytes())
    async with server(folder, {"cloud": credentials}, "-disable-mdns") as running:
        yield Near(running, secured.running.key)


async def test_direct_once_the_cloud_has_introduced_them(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", *CLOUD) as running:
        secured = Secured(running, tmp_path)
        secured.trust()
        await secured.join(**ARM)
        credentials = await new_part(secured, "base", remotes=[arm(secured)])
        async with secured.machine() as far, near(secured, tmp_path / "near", credentials) as base:
            await until(base.takes(DIRECT), "calls go directly")
            assert await base.path() == f"direct, at {far.address}"
            async with base.client() as client:
                await client.call(MOTOR, "arm:left", "set_power", power_pct=0.5)
            await base.stays_direct(2.5)  # longer than the window of the session
            async with base.client() as client:
                assert await client.call(MOTOR, "arm:left", "is_moving")  # the session goes on
            await far.stop(signal.SIGKILL)
            async with secured.machine() as second:
                await until(base.takes(DIRECT), "a machine that restarts is introduced again")
                await running.stop(signal.SIGKILL)
                await base.stays_direct(1.0)
                await second.stop(signal.SIGKILL)
                address = f"localhost:{secured.port}"
                async with cloud(tmp_path / "cloud", *CLOUD, "--listen", address), secured.machine():
                    await until(base.takes(DIRECT), "the machine and the cloud have both restarted")


async def test_through_the_cloud_without_a_port(tmp_path: Path) -> None:
    """A remote whose port has no certificate is called through the cloud."""
    async with cloud(tmp_path / "cloud", *CLOUD) as running:
        secured = Secured(running, tmp_path)
        secured.trust()
        await secured.join(**ARM)
        credentials = await new_part(secured, "base", remotes=[arm(secured, host="")])
        async with secured.machine("-no-tls"), near(secured, tmp_path / "near", credentials) as base:
            await until(base.takes(THROUGH_CLOUD), "calls go through the cloud")


async def test_the_main_part_uses_its_other_parts(tmp_path: Path) -> None:
    """Neither has a key, and the cloud has no domain for machines."""
    async with cloud(tmp_path / "cloud", "--tls") as running:
        secured = Secured(running, tmp_path)
        secured.trust()
        own = {"name": "own", "api": MOTOR, "model": "fake"}
        await secured.join(components=[own], network={"bind_address": "127.0.0.1:0"})
        main = secured.credentials["id"]
        async with secured.client() as client:
            robot = (await client.call(APP, "", "get_robot_part", id=main))["part"]["robot"]
            deck = await client.call(APP, "", "new_robot_part", robot_id=robot, part_name="deck")
            await client.call(APP, "", "update_robot_part", id=deck, name="deck", robot_config_json=json.dumps(ARM))
            secret = (await client.call(APP, "", "get_robot_part", id=deck))["part"]["secret"]
            async with (
                secured.machine() as rover,
                near(secured, tmp_path / "deck", {**secured.credentials, "id": deck, "secret": secret}),
            ):
                base = Near(rover, running.key)
                await until(base.takes(DIRECT, "deck"), "the main part uses the other one")
                await client.call(APP, "", "mark_part_as_main", part_id=deck)

                async def gone() -> bool:
                    async with base.client() as machine:
                        resources = await machine.call(ROBOT, "", "resource_names")
                    return not any("deck:left" in name for name in resources)

                await until(gone, "it is no longer the main part")
