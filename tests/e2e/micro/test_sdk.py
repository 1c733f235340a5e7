"""The unmodified Python SDK and the command line against micro servers on all hosts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError, Status
from viam.components.base import Base
from viam.components.board import Board
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.proto.common import Vector3
from viam.robot.client import RobotClient

from tests.e2e.micro.machines import AUTH, CAR, KEY, KEY_ID, LEFT, PINS, SELF, SMALL
from tests.e2e.micro.program import FIRMWARE, PYTHON, STOCK, MicroServer, micro_server
from tests.e2e.sdk.client import over_tls, plaintext

HOSTS = [
    pytest.param(PYTHON, "", id="CPython"),
    pytest.param(STOCK, "400k", id="MicroPython of Debian"),
    pytest.param(FIRMWARE, "64k", id="frozen, 32 bits, 64 KiB"),
]


async def session(address: str) -> dict[str, Any]:
    """Drive the machine CAR."""
    seen: dict[str, Any] = {}
    robot = await RobotClient.at_address(address, plaintext())
    try:
        seen["names"] = sorted(name.name for name in robot.resource_names)
        status = await robot.get_machine_status()
        seen["errors"] = {each.name.name: each.error for each in status.resources if each.error}
        seen["version"] = (await robot.get_version()).platform
        seen["readings"] = set(await Sensor.from_robot(robot, "self").get_readings())
        board = Board.from_robot(robot, "pins")
        pin = await board.gpio_pin_by_name("13")
        await pin.set(True)
        seen["pin"] = await pin.get()
        await pin.set_pwm(0.25)
        seen["pwm"] = await pin.get_pwm()
        analog = await board.analog_by_name("light")
        seen["analog"] = (await analog.read()).value
        motor = Motor.from_robot(robot, "left")
        await motor.set_power(0.5)
        seen["powered"] = await motor.is_powered()
        await motor.go_for(600, 0.5)
        seen["moving"] = await motor.is_moving()
        base = Base.from_robot(robot, "rover")
        await base.move_straight(20, 500)
        await base.set_power(Vector3(y=1), Vector3(z=0.1))
        seen["driving"] = await base.is_moving()
        await robot.stop_all()
        seen["stopped"] = not await base.is_moving()
        with pytest.raises(GRPCError) as refused:
            await Sensor.from_robot(robot, "self").do_command({"a": 1})
        seen["refused"] = refused.value.status
    finally:
        await robot.close()
    return seen


@pytest.mark.parametrize(("host", "heap"), HOSTS)
def test_sessions_of_the_sdk(tmp_path: Path, host: str, heap: str) -> None:
    with micro_server(tmp_path, CAR, host, heap) as server:
        for _ in range(2):
            seen = asyncio.run(asyncio.wait_for(session(server.address), 60))
            assert seen == {
                "names": ["left", "pins", "right", "rover", "self"],
                "errors": {"eye": "this server has no models of camera"},
                "version": "cpython" if host == PYTHON else "micropython",
                "readings": {"heap_free_bytes", "uptime_s"},
                "pin": True,
                "pwm": 0.25,
                "analog": 0,
                "powered": (True, 0.5),
                "moving": False,
                "driving": True,
                "stopped": True,
                "refused": Status.UNIMPLEMENTED,
            }


async def readings(address: str, key: str | None) -> Any:
    robot = await RobotClient.at_address(address, over_tls(KEY_ID if key else None, key))
    try:
        return await Sensor.from_robot(robot, "self").get_readings()
    finally:
        await robot.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(("host", "heap"), HOSTS[:2])
def test_tls_and_keys(tmp_path: Path, host: str, heap: str, certificate: dict[str, str]) -> None:
    files = {key: value for key, value in certificate.items() if key.startswith("tls_")}
    with micro_server(tmp_path, {**SMALL, "auth": AUTH, "network": files}, host, heap) as server:
        assert "uptime_s" in asyncio.run(readings(server.address, KEY))
        for key in ("wrong", None):
            with pytest.raises((GRPCError, ConnectionError)):
                asyncio.run(readings(server.address, key))
    assert KEY not in "".join(server.lines)


def machine(server: MicroServer, *words: str) -> str:
    command = [sys.executable, "-m", "command.cli", "--address", f"http://{server.address}", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("host", "heap"), [HOSTS[2]])
def test_the_command_line_and_a_changed_file(tmp_path: Path, host: str, heap: str) -> None:
    with micro_server(tmp_path, CAR, host, heap) as server:
        assert "this server has no models of camera" in machine(server, "status")
        assert '"power_pct": 0.25' in machine(server, "call", "left", "set_power", "power_pct=0.25") + machine(
            server, "call", "left", "is_powered"
        )
        server.write({"components": [SELF, PINS, {**LEFT, "name": "other"}]})
        server.until("configured")
        assert "other" in machine(server, "resources")
        server.config.write_text("{")
        server.until("is not valid JSON, or too large for the memory: the last configuration stays in force")
        assert "other" in machine(server, "resources")


@pytest.mark.parametrize(("host", "heap"), [HOSTS[2]])
def test_a_motor_stops_when_its_client_dies(tmp_path: Path, host: str, heap: str) -> None:
    program = """
import asyncio, os, sys
from viam.components.motor import Motor
from viam.proto.common import Vector3
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions
async def main():
    dial = DialOptions(disable_webrtc=True, insecure=True)
    robot = await RobotClient.at_address(sys.argv[1], RobotClient.Options(dial_options=dial))
    await Motor.from_robot(robot, "left").set_power(0.5)
    os._exit(0)
asyncio.run(main())
"""
    with micro_server(tmp_path, CAR, host, heap) as server:
        subprocess.run([sys.executable, "-c", program, server.address], check=True, timeout=60)
        assert '"is_on": true' in machine(server, "call", "left", "is_powered")
        server.until("stopping left: its client is silent")
        assert '"is_on": false' in machine(server, "call", "left", "is_powered")
