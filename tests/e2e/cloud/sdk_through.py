"""A client of the official SDK that calls a machine through the cloud, by the machine's host name, without WebRTC.

`python -m tests.e2e.cloud.sdk_through HOST:PORT TYPE ENTITY SECRET` prints what it has read. Host names are resolved to
loopback, as the wildcard DNS name of an operator would; the SDK is unmodified.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.robot.client import RobotClient
from viam.rpc.dial import Credentials, DialOptions

LIMIT = 60  # seconds
_resolve = socket.getaddrinfo


def _loopback(host: Any, *arguments: Any, **options: Any) -> Any:
    return _resolve("127.0.0.1", *arguments, **options)


async def main(address: str, kind: str, entity: str, secret: str) -> None:
    shown = DialOptions(
        disable_webrtc=True,
        auth_entity=entity or None,
        credentials=Credentials(kind, secret),
        timeout=LIMIT,
    )
    async with asyncio.timeout(LIMIT):
        machine = await RobotClient.at_address(address, RobotClient.Options(dial_options=shown))
        try:
            print(sorted(resource.name for resource in machine.resource_names))
            print(sorted((await Sensor.from_robot(machine, "a").get_readings()).items()))
            motor = Motor.from_robot(machine, "left")
            await motor.set_power(0.5)
            print(await motor.is_moving(), (await motor.is_powered())[1])
        finally:
            await machine.close()


if __name__ == "__main__":
    socket.getaddrinfo = _loopback
    asyncio.run(main(*sys.argv[1:]))
