"""A base driven with the events that the unmodified official Python SDK triggers."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from viam.components.base import Base
from viam.components.input import Control, Controller, Event, EventType
from viam.proto.common import ResourceName
from viam.robot.client import RobotClient

from tests.e2e.harness import Server
from tests.e2e.sdk.test_components import play, until

DOCUMENT = {
    "components": [
        {"name": "rover", "api": "rdk:component:base", "model": "fake"},
        {"name": "pad", "api": "rdk:component:input_controller", "model": "webgamepad"},
    ],
    "services": [
        {
            "name": "drive",
            "api": "rdk:service:base_remote_control",
            "model": "builtin",
            "attributes": {"base": "rover", "input_controller": "pad", "control_mode": "joystickControl"},
        }
    ],
}
PROGRAM = """
import asyncio, sys
from viam.components.input import Control, Controller, Event, EventType
from viam.robot.client import RobotClient
from tests.e2e.sdk.client import plaintext
async def main():
    robot = await RobotClient.at_address(sys.argv[1], plaintext())
    pad = Controller.from_robot(robot, "pad")
    await pad.trigger_event(Event(0.0, EventType.POSITION_CHANGE_ABSOLUTE, Control.ABSOLUTE_Y, -0.5))
    print("driving", flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def driven_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(DOCUMENT, tmp_path_factory.mktemp("machine")) as server:
        yield server.wait_running().address


def moved(value: float) -> Event:
    return Event(0.0, EventType.POSITION_CHANGE_ABSOLUTE, Control.ABSOLUTE_Y, value)


async def is_still(rover: Base) -> bool:
    return not await rover.is_moving()


def test_events_drive_the_base_until_everything_is_stopped(driven_machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        name = ResourceName(namespace="rdk", type="service", subtype="base_remote_control", name="drive")
        assert name in robot.resource_names
        pad, rover = Controller.from_robot(robot, "pad"), Base.from_robot(robot, "rover")
        await pad.trigger_event(moved(-0.5))
        await until(rover.is_moving)
        await robot.stop_all()
        assert await is_still(rover)
        assert (await pad.get_events())[Control.ABSOLUTE_Y].value == 0
        await pad.trigger_event(moved(-0.5))
        await until(rover.is_moving)
        await pad.trigger_event(moved(0.0))
        await until(lambda: is_still(rover))

    play(driven_machine, script)


def test_the_base_stops_when_the_client_is_killed(driven_machine: str) -> None:
    command = [sys.executable, "-c", PROGRAM, driven_machine]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        try:
            assert client.stdout is not None
            assert client.stdout.readline() == b"driving\n"

            async def script(robot: RobotClient) -> None:
                rover = Base.from_robot(robot, "rover")
                await until(rover.is_moving)
                client.send_signal(signal.SIGKILL)
                await until(lambda: is_still(rover))

            play(driven_machine, script)
        finally:
            client.kill()
