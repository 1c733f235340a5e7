"""Connect with the official SDK and print the names of the resources: sdk_client.py ADDRESS MODE [KEY_ID KEY]."""

from __future__ import annotations

import asyncio
import sys

from viam.robot.client import RobotClient
from viam.rpc.dial import Credentials, DialOptions


async def main(address: str, mode: str, *key: str) -> None:
    credentials = Credentials(type="api-key", payload=key[1]) if key else None
    options = DialOptions(
        disable_webrtc="direct" in mode,
        insecure="insecure" in mode,
        credentials=credentials,
        auth_entity=key[0] if key else None,
        initial_connection_attempts=1,
        timeout=10,
    )
    robot_options = RobotClient.Options(dial_options=options, check_connection_interval=0, attempt_reconnect_interval=0)
    robot = await RobotClient.at_address(address, robot_options)
    sys.stdout.write(" ".join(["NAMES", *sorted(name.name for name in robot.resource_names)]))
    await robot.close()


asyncio.run(main(*sys.argv[1:]))
