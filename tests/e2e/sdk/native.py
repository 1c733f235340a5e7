"""Server and SDK with its default transport in a network namespace: `python -m tests.e2e.sdk.native WAY FOLDER CA`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from viam.components.motor import Motor
from viam.robot.client import RobotClient
from viam.rpc.dial import Credentials, DialOptions

from tests.e2e.harness import Server
from tests.e2e.sdk.machine import document
from tests.e2e.sdk.test_connect import AUTH, KEY, KEY_ID


def options(way: str) -> RobotClient.Options:
    credentials = Credentials(type="api-key", payload=KEY) if "credentials" in way else None
    return RobotClient.Options(
        dial_options=DialOptions(
            insecure="tls" not in way, auth_entity=KEY_ID if credentials else None, credentials=credentials, timeout=20
        ),
        check_connection_interval=0,
    )


async def main(way: str, folder: Path, ca: Path) -> None:
    extra: dict[str, object] = {}
    if "tls" in way:
        os.environ["SSL_CERT_FILE"] = str(ca)  # the native helper always verifies
        extra["network"] = {
            "tls_cert_file": str(ca.with_name("server.pem")),
            "tls_key_file": str(ca.with_name("server.key")),
        }
    if "credentials" in way:
        extra["auth"] = AUTH
    with Server(document(**extra), folder) as server:
        server.wait_running()
        async with asyncio.timeout(60):
            robot = await RobotClient.at_address(f"localhost:{server.port}", options(way))
            assert len(robot.resource_names) >= 20
            motor = Motor.from_robot(robot, "motor")
            await motor.set_power(0.1)
            await motor.stop()
            await robot.close()
    print("connected")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
