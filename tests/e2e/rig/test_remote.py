"""A machine in another process: the same handles; everything stops between tests and when this process disappears."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import trio

from engine.calls.sessions import DEFAULT_WINDOW
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from tests.e2e.harness import Server
from tests.e2e.rig.project import Project, environment

MOTOR = {
    "components": [
        {
            "name": "left",
            "api": "rdk:component:motor",
            "model": "rdk:builtin:fake",
            "attributes": {"max_rpm": 100},
        }
    ]
}
TESTS = """
    from engine.components.motion.motor import Motor
    pytestmark = pytest.mark.machine({"components": [{"name": "left", "api": "rdk:component:motor"}]})

    async def test_first(rig):
        motor = rig.get(Motor, "left")
        await motor.set_power(1.0)
        assert (await motor.is_powered()).power_pct == 1.0
        print("the motor runs", flush=True)
        END

    async def test_second(rig):
        assert not (await rig.get(Motor, "left").is_powered()).is_on
        with pytest.raises(Exception, match="power_pct"):
            await rig.get(Motor, "left").set_power("fast")
"""


def test_motion_of_a_failed_test_is_stopped_before_the_next(project: Project, tmp_path: Path) -> None:
    project.test(TESTS.replace("END", "assert False"))
    with Server(MOTOR, tmp_path) as server:
        done = project.run("--rig", server.wait_running().address)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert project.properties("test_first")["rig.outputs"] == "safe"


def test_a_test_without_calls_keeps_its_session(project: Project, tmp_path: Path) -> None:
    longer = DEFAULT_WINDOW + 1
    project.test(TESTS.replace("END", f"await trio.sleep({longer}); assert (await motor.is_powered()).is_on"))
    with Server(MOTOR, tmp_path) as server:
        done = project.run("--rig", server.wait_running().address)
    assert "2 passed" in done.stdout, done.stdout


def test_a_lost_connection_stops_motion(project: Project, tmp_path: Path) -> None:
    project.test(TESTS.replace("END", "await trio.sleep_forever()"))
    with Server(MOTOR, tmp_path) as server:
        command = project.command("-s", "--rig", server.wait_running().address)
        with subprocess.Popen(
            command, cwd=project.folder, stdout=subprocess.PIPE, text=True, env=environment()
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if "the motor runs" in line:
                    process.send_signal(signal.SIGKILL)
        trio.run(stopped, server.address)


async def stopped(address: str) -> None:
    with trio.fail_after(30):
        async with Channel(address) as channel:
            client = ApiClient(channel)
            while (await client.call("rdk:component:motor", "left", "is_powered"))["is_on"]:  # noqa: ASYNC110
                await trio.sleep(0.1)


def test_a_machine_without_required_resources(project: Project, tmp_path: Path) -> None:
    project.test(TESTS.replace('"left", "api"', '"right", "api"').replace("END", "pass"))
    with Server(MOTOR, tmp_path) as server:
        done = project.run("--rig", server.wait_running().address, "-k", "first")
    assert "rdk:component:motor/right: not configured" in done.stdout, done.stdout
    assert "give it the configuration of the test" in done.stdout


def test_no_machine_at_the_address(project: Project) -> None:
    project.test(TESTS.replace("END", "pass"))
    done = project.run("--rig", "127.0.0.1:1", "-k", "first")
    assert "1 failed" in done.stdout, done.stdout
    assert "cannot connect to 127.0.0.1:1" in done.stdout
