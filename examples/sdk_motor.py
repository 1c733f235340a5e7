"""Turn a motor of the simulated bench with the official Python SDK: start `make run` first."""

import asyncio
import sys

from viam.components.motor import Motor
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions


async def main(address: str) -> None:
    """Connect without TLS, turn, tell the position."""
    options = RobotClient.Options(dial_options=DialOptions(insecure=True, disable_webrtc=True))
    async with await RobotClient.at_address(address, options) as robot:
        motor = Motor.from_robot(robot, "left")
        await motor.go_for(rpm=60, revolutions=2)
        print(f"turned to {await motor.get_position():.2f} revolutions")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:8080"))
