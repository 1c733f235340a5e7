"""A client of the official SDK that finds a machine through the cloud and reads one of its sensors.

`python -m tests.e2e.cloud.sdk_machine FOLDER` starts cloud, machine and client in plain text. It needs a network
namespace with nothing but loopback, because the SDK's default transport resolves names on the network.
`... ADDRESS SECRET` prints the resources of a machine, requested with a secret of its location.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import trio
from viam.app.viam_client import ViamClient
from viam.components.sensor import Sensor
from viam.robot.client import RobotClient
from viam.rpc.dial import Credentials, DialOptions

from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_machine import APP, Joined, sensors, until

LIMIT = 60  # seconds


async def readings(address: str, key: tuple[str, str], robot: str, *, secure: bool) -> Any:
    """Return the readings of the sensor `a` of a machine that is identified by its id only."""
    options = DialOptions.with_api_key(key[1], key[0])
    options.insecure = not secure
    options.disable_webrtc = secure  # without TLS and with a key, the SDK connects only by its default transport
    async with asyncio.timeout(LIMIT):
        client = await ViamClient.create_from_dial_options(options, app_url=address)
        try:
            machine = await client.connect_to_machine(id=robot)
            try:
                return await Sensor.from_robot(machine, "a").get_readings()
            finally:
                await machine.close()
        finally:
            client.close()


async def names_by_secret(address: str, secret: str) -> list[str]:
    """Return the resources of the machine at `address`, requested over TLS with a secret of its location."""
    shown = DialOptions(credentials=Credentials("robot-location-secret", secret), disable_webrtc=True)
    async with asyncio.timeout(LIMIT):
        machine = await RobotClient.at_address(address, RobotClient.Options(dial_options=shown))
        try:
            return [resource.name for resource in machine.resource_names]
        finally:
            await machine.close()


async def main(folder: Path) -> None:
    async with cloud(folder / "cloud") as running, running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        joined = Joined(running, client, part, folder / "machine")
        await joined.save(**sensors("a"))
        async with joined.machine() as machine:

            async def listed() -> bool:
                current = (await client.call(APP, "", "get_robot_part", id=part["id"]))["part"]
                return bool(current["fqdn"] == machine.address)

            await until(listed, "the cloud knows where the machine listens")
            call = readings(running.address, running.key, robot, secure=False)
            print(await trio.to_thread.run_sync(lambda: asyncio.run(call)))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(*asyncio.run(names_by_secret(*sys.argv[1:])))
    else:
        trio.run(main, Path(sys.argv[1]))
