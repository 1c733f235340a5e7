"""The machine-wide service through the official Python SDK: names, status, operations, StopAll, errors, sessions."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from grpclib import GRPCError, Status
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.proto.common import ResourceName
from viam.proto.robot import (
    GetMachineStatusResponse,
    GetSessionsRequest,
    ResourceStatus,
    RestartModuleRequest,
    SendSessionHeartbeatRequest,
    StreamStatusRequest,
)
from viam.robot.client import RobotClient

from tests.e2e.sdk.client import plaintext
from tests.e2e.sdk.machine import COMPONENTS, SERVICES, SESSION_WINDOW_S
from tests.e2e.sdk.test_components import play, refused, until


def test_resource_names(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        names = {f"{name.namespace}:{name.type}:{name.subtype}/{name.name}" for name in robot.resource_names}
        assert {f"{entry['api']}/{entry['name']}" for entry in [*COMPONENTS, *SERVICES]} <= names
        await robot.refresh()

    play(machine, script)


def test_machine_status_and_version(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        status = await robot.get_machine_status()
        assert status.state == GetMachineStatusResponse.State.STATE_RUNNING
        by_name = {resource.name.name: resource for resource in status.resources}
        assert by_name["motor"].state == ResourceStatus.State.STATE_READY
        assert by_name["motor"].last_updated.seconds > time.time() - 3600
        version = await robot.get_version()
        assert version.platform
        assert version.version

    play(machine, script)


def test_operations(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motor = Motor.from_robot(robot, "motor")
        turning = asyncio.create_task(motor.go_for(1, 1000))

        async def listed(method: str) -> bool:
            return any(operation.method.endswith(method) for operation in await robot.get_operations())

        await until(lambda: listed("GoFor"))
        (operation,) = [each for each in await robot.get_operations() if each.method.endswith("GoFor")]
        blocked = asyncio.create_task(robot.block_for_operation(operation.id))
        await until(lambda: listed("BlockForOperation"))
        await robot.cancel_operation(operation.id)
        await blocked
        with pytest.raises(GRPCError) as caught:
            await turning
        assert caught.value.status is Status.CANCELLED
        assert not await motor.is_moving()

    play(machine, script)


def test_stop_all(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motors = [Motor.from_robot(robot, name) for name in ("motor", "left", "right")]
        for motor in motors:
            await motor.set_power(0.3)
        name = ResourceName(namespace="rdk", type="component", subtype="motor", name="left")
        await robot.stop_all({name: {"why": "test"}})
        for motor in motors:
            assert not await motor.is_moving()

    play(machine, script)


def test_errors_have_the_right_status(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        missing = Motor.get_resource_name("motr")
        from viam.components.motor.client import MotorClient

        error = await refused(Status.NOT_FOUND, MotorClient("motr", robot._channel).get_position())
        assert "motor" in str(error.message), f"a near name helps: {missing}"
        assert await Sensor.from_robot(robot, "sensor").do_command({"say": "it"}) == {"say": "it"}
        motor = Motor.from_robot(robot, "motor")
        await refused(Status.INVALID_ARGUMENT, motor.go_for(0, 1))
        with pytest.raises((GRPCError, asyncio.TimeoutError)) as caught:
            await motor.go_for(1, 1000, timeout=0.05)
        if isinstance(caught.value, GRPCError):
            assert caught.value.status is Status.DEADLINE_EXCEEDED
        await refused(Status.NOT_FOUND, robot._client.RestartModule(RestartModuleRequest(module_name="nothing")))
        with pytest.raises(GRPCError) as streaming:
            await robot._client.StreamStatus(StreamStatusRequest())
        assert streaming.value.status is Status.UNIMPLEMENTED
        with pytest.raises(GRPCError) as cloud:
            await robot.get_cloud_metadata()
        assert cloud.value.message

    play(machine, script)


def test_log_and_frames(machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        await robot.log("a-module", "info", datetime.now(UTC), "hello from a client", "")
        assert isinstance(await robot.get_frame_system_config(), list)

    play(machine, script)


def test_sessions_are_listed_and_expire_by_name(machine: str) -> None:
    async def sessions(robot: RobotClient) -> set[str]:
        return {session.id for session in (await robot._client.GetSessions(GetSessionsRequest())).sessions}

    async def script(robot: RobotClient) -> None:
        before = await sessions(robot)  # of earlier tests, until their windows have passed
        await Motor.from_robot(robot, "motor").set_power(0.1)
        assert len(await sessions(robot) - before) == 1
        await Motor.from_robot(robot, "motor").stop()
        error = await refused(
            Status.INVALID_ARGUMENT,
            robot._client.SendSessionHeartbeat(SendSessionHeartbeatRequest(id="00000000-0000-4000-8000-000000000000")),
        )
        assert error.message == "SESSION_EXPIRED"

    play(machine, script)


HOLDING = """
import asyncio, sys
from tests.e2e.sdk.client import plaintext
from viam.components.motor import Motor
from viam.robot.client import RobotClient
async def main():
    robot = await RobotClient.at_address(sys.argv[1], plaintext())
    await Motor.from_robot(robot, "left").set_power(0.4)
    print("holding", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_killing_a_client_stops_the_resources_that_it_controlled(machine: str) -> None:
    """A motor whose client sends heartbeats runs for longer than their window, and stops after kill -9.

    tests/unit/engine/test_machine.py shows in virtual time that it stops after exactly one window.
    """

    async def main() -> float:
        async with asyncio.timeout(60):
            robot = await RobotClient.at_address(machine, plaintext())
            client = subprocess.Popen([sys.executable, "-c", HOLDING, machine], stdout=subprocess.PIPE, text=True)
            try:
                assert client.stdout is not None
                assert await asyncio.to_thread(client.stdout.readline) == "holding\n"
                motor = Motor.from_robot(robot, "left")
                held_until = time.monotonic() + 1.5 * SESSION_WINDOW_S
                while time.monotonic() < held_until:
                    assert await motor.is_moving()
                    await asyncio.sleep(0.02)
                os.kill(client.pid, signal.SIGKILL)
                killed = time.monotonic()
                while await motor.is_moving():
                    await asyncio.sleep(0.005)
                return time.monotonic() - killed
            finally:
                client.kill()
                client.wait()
                if client.stdout:
                    client.stdout.close()
                await robot.close()

    print(json.dumps({"stopped after s": round(asyncio.run(main()), 3), "window s": SESSION_WINDOW_S}))
