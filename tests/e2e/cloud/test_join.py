"""examples/join_a_cloud.py: a program that joins a cloud with `uplink` alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import trio

from tests.e2e.cloud.process import cloud

APP = "viam.app.v1.AppService"
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "join_a_cloud.py"
LIMIT = 60.0  # seconds for each step


async def lines(process: trio.Process, until: str) -> list[dict[str, object]]:
    """Return the printed objects up to a line with `until`."""
    assert process.stdout is not None
    printed = b""
    with trio.fail_after(LIMIT):
        while until.encode() not in printed or not printed.endswith(b"\n"):
            data = await process.stdout.receive_some()
            assert data, f"it ended: {printed!r}"
            printed += data
    return [json.loads(line) for line in printed.splitlines()]


async def test_configuration_state_and_logs(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        file = tmp_path / "machine.json"
        file.write_text(json.dumps({"cloud": credentials}))

        async def save(name: str) -> None:
            document = {"components": [{"name": name, "api": "rdk:component:motor", "model": "fake"}]}
            await client.call(
                APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(document)
            )

        async def logged(text: str) -> bool:
            answer = await client.call(APP, "", "get_robot_part_logs", id=part["id"], limit=100)
            return any(text in json.dumps(entry["fields"]) for entry in answer["logs"])

        await save("left")
        command = [sys.executable, str(EXAMPLE), str(file)]
        async with trio.open_nursery() as nursery:
            start = partial(trio.run_process, command, stdout=subprocess.PIPE, check=False)
            process = await nursery.start(start)
            assert (await lines(process, "left"))[-1]["components"] == ["left"]
            await save("right")
            assert (await lines(process, "right"))[-1]["components"] == ["right"]
            with trio.fail_after(LIMIT):
                while not await logged("right"):
                    await trio.lowlevel.checkpoint()
                seen = ""
                while seen != "ONLINE":
                    seen = (await client.call(APP, "", "get_robot_part", id=part["id"]))["part"]["online_state"]
            process.send_signal(signal.SIGINT)
            with trio.fail_after(LIMIT):
                assert await process.wait() == 0
        assert json.loads(next((tmp_path / ".join").rglob("*.json")).read_bytes())
