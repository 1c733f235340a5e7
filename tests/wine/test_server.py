"""machine-server for Windows on Wine, called by the official Python SDK on Linux."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from viam.components.arm import Arm
from viam.components.base import Base
from viam.components.camera import Camera
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

from tests.wine.conftest import FAKES, Server, fake
from tests.wine.room import PYTHON, Room

pytestmark = pytest.mark.limit(200)
READY = 30.0  # seconds for a change to take effect beside other tests


def called(server: Server, script: Callable[[RobotClient], Awaitable[Any]]) -> Any:
    """Return what a script does with a client of the official SDK."""

    async def run() -> Any:
        options = RobotClient.Options(dial_options=DialOptions(disable_webrtc=True, insecure=True))
        async with await RobotClient.at_address(server.address, options) as robot:
            return await script(robot)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def shared(room: Room) -> Iterator[Server]:
    """Yield a server with five fake components, which captures the readings of its sensor."""
    method = {"method": "Readings", "capture_frequency_hz": 10}
    service = {"type": "data_manager", "attributes": {"capture_methods": [method]}}
    sensor = {**fake("sensor", "sensor"), "service_configs": [service]}
    room.folder("captured")
    data = {
        "name": "data",
        "api": "rdk:service:data_manager",
        "model": "builtin",
        "attributes": {"capture_dir": r"C:\t\captured", "sync_disabled": True},
    }
    components = [sensor if entry["name"] == "sensor" else entry for entry in FAKES]
    server = Server(room, {"components": components, "services": [data]})
    try:
        server.until("running", '"ready":7')
        yield server
    finally:
        server.kill()


def test_the_official_sdk_calls_fakes(shared: Server) -> None:
    async def script(robot: RobotClient) -> None:
        names = {name.name for name in robot.resource_names}
        assert {"motor", "sensor", "camera", "arm", "base", "data"} <= names
        motor = Motor.from_robot(robot, "motor")
        await motor.set_power(0.5)
        assert await motor.is_powered() == (True, 0.5)
        await motor.stop()
        assert await motor.is_powered() == (False, 0.0)
        assert await Sensor.from_robot(robot, "sensor").get_readings()
        images, _ = await Camera.from_robot(robot, "camera").get_images()
        assert len(images[0].data) > 1000
        assert await Arm.from_robot(robot, "arm").get_joint_positions()
        await Base.from_robot(robot, "base").stop()

    called(shared, script)


def test_pages_and_metrics_are_served(shared: Server) -> None:
    page = urllib.request.Request(f"http://{shared.address}/", headers={"Accept": "text/html"})
    with urllib.request.urlopen(page, timeout=30) as answer:
        assert b"<html" in answer.read()
    with urllib.request.urlopen(f"http://{shared.address}/metrics", timeout=30) as answer:
        assert b"process" in answer.read()


def test_a_change_of_the_file_takes_effect(shared: Server) -> None:
    components = list(shared.document["components"])
    shared.document["components"] = [*components, fake("second", "motor")]
    shared.write()
    shared.until("reconfigure complete", '"ready":8', limit=READY)

    async def script(robot: RobotClient) -> tuple[bool, float]:
        return await Motor.from_robot(robot, "second").is_powered()

    assert called(shared, script) == (False, 0.0)
    shared.document["components"] = components
    shared.write()
    shared.until("reconfigure complete", '"ready":7', limit=READY)


def test_readings_are_captured_to_files(shared: Server) -> None:
    folder = shared.here.parent / "captured"
    end = time.monotonic() + READY
    while not any(path.suffix in (".prog", ".capture") and path.stat().st_size for path in folder.rglob("*")):
        assert time.monotonic() < end, "no file was written"
        time.sleep(0.2)  # there is no event for the files of a Windows program


def test_hardware_of_linux_is_refused_with_the_reason(room: Room) -> None:
    components = [
        {"name": "board", "api": "rdk:component:board", "model": "linux", "attributes": {}},
        {"name": "motor", "api": "rdk:component:motor", "model": "fake"},
    ]
    services = [{"name": "shell", "api": "rdk:service:shell", "model": "builtin"}]
    server = Server(room, {"components": components, "services": services})
    try:
        said = server.until("board", "not available on Windows")
        assert "no interface for it" in said
        assert any(
            "the machine is not announced" in line and "Windows" in line for line in server.lines
        ) or server.until("the machine is not announced", "Windows")
        assert any("shell" in line and "operating system" in line for line in server.lines) or server.until(
            "shell", "does not work on this operating system"
        )
        assert any("new devices cannot be detected" in line and "Windows" in line for line in server.lines)
    finally:
        server.kill()


def test_a_killed_module_is_restarted_and_everything_stops_in_order(room: Room) -> None:
    folder, there = room.folder("module")
    (folder / "run.bat").write_text(f"@{PYTHON} Z:\\opt\\machine\\tests\\wine\\inside\\module.py %*\r\n")
    module = {"name": "pid", "type": "local", "executable_path": rf"{there}\run.bat"}
    sensor = {"name": "pid", "api": "rdk:component:sensor", "model": "tests:wine:pid"}
    server = Server(room, {"modules": [module], "components": [sensor]}, "-log-file", rf"{there}\server.log")
    log = folder / "server.log"
    try:
        first = pid_when_ready(server, 0)
        assert room.run("taskkill", "/F", "/PID", str(first)).returncode == 0
        second = pid_when_ready(server, first)
        assert second != first

        async def stop(robot: RobotClient) -> None:
            await robot.shutdown()

        called(server, stop)
        assert server.wait() == 0
        assert str(second) not in room.run("tasklist").stdout.split()
        text = log.read_bytes()
        assert b"stopped" in text
        assert b"\r\n" not in text
    finally:
        server.kill()


def pid_when_ready(server: Server, other: int) -> int:
    """Return the process id that the module's sensor reports, when it is not `other`."""

    async def poll() -> int:
        options = RobotClient.Options(dial_options=DialOptions(disable_webrtc=True, insecure=True))
        while True:
            try:
                async with await RobotClient.at_address(server.address, options) as robot:
                    readings = await Sensor.from_robot(robot, "pid").get_readings(timeout=5)
                    if int(readings["pid"]) != other:
                        return int(readings["pid"])
            except Exception:
                pass
            await asyncio.sleep(0.5)  # the start of a program of another computer: it has no event here

    return asyncio.run(asyncio.wait_for(poll(), 100))
