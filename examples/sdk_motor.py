"""Turn a motor of the simulated machine with the official Python SDK. Start `make run` first, then `. .run/env`."""

import asyncio
import os

from viam.components.motor import Motor
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions


async def main() -> None:
    """Connect without TLS, turn the motor and print its position."""
    key, secret = os.environ.get("MACHINE_API_KEY_ID", ""), os.environ.get("MACHINE_API_KEY", "")
    dialing = DialOptions.with_api_key(secret, key) if key else DialOptions(disable_webrtc=True)
    dialing.insecure = True
    address = os.environ.get("MACHINE_ADDRESS", "localhost:8080")
    async with await RobotClient.at_address(address, RobotClient.Options(dial_options=dialing)) as robot:
        motor = Motor.from_robot(robot, "left")
        await motor.go_for(rpm=60, revolutions=2)
        print(f"turned to {await motor.get_position():.2f} revolutions")


asyncio.run(main())
