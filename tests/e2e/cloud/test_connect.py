"""The programs of the tab Connect, run as they stand on the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from cloud.web.views.connect import ConnectTarget, snippets
from tests.e2e import typescript
from tests.e2e.cloud.process import cloud
from tests.e2e.server.process import server

PATIENCE = 120.0  # seconds in which a program has to answer: a busy computer starts Node slowly
APP = "viam.app.v1.AppService"
DOCUMENT = '{"components": [{"name": "host", "api": "rdk:component:sensor", "model": "host"}]}'
NODE = Path(typescript.__file__).parent  # its folder has the official SDK


async def output(*command: str, typed: str = "", env: Mapping[str, str] | None = None) -> str:
    with trio.fail_after(PATIENCE):
        done = await trio.run_process(
            command,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            stdin=typed.encode(),
            env={**os.environ, **(env or {})},
        )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[tuple[ConnectTarget, tuple[str, str]]]:
    """Yield a machine of a cloud, and a key for programs."""
    async with cloud(folder / "cloud") as running:
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="it's", location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
            await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=DOCUMENT)
            grant = {"authorization_id": "robot_operator", "resource_type": "robot", "resource_id": robot}
            key = await client.call(APP, "", "create_key", authorizations=[grant], name="programs")
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        (folder / "machine").mkdir()
        async with server(folder / "machine", {"cloud": credentials}, "-disable-mdns", running=True) as machine:
            home, pages = f"http://{running.address}", f"http://{machine.address}"
            yield ConnectTarget("it's", part["id"], home, pages=pages, sensor="host"), (key["id"], key["key"])


def programs_for(target: ConnectTarget, key: tuple[str, str]) -> dict[str, str]:
    return {snippet.id: snippet.text for snippet in snippets(target, *key)}


async def test_programs_of_the_page_call_the_machine(tmp_path: Path) -> None:
    async with connected(tmp_path) as (target, key):
        programs = programs_for(target, key)
        said = await output(sys.executable, "-c", programs["python"])
        assert "'cpu_count'" in said, said
        assert '"cpu_count"' in await output("sh", "-c", programs["curl"])
        without_sensor = programs_for(replace(target, sensor=""), key)["curl"]
        assert '"host"' in await output("sh", "-c", without_sensor)


async def test_the_commands_of_the_page_call_the_machine(tmp_path: Path) -> None:
    """All but the last one, which opens a browser."""
    async with connected(tmp_path) as (target, key):
        *lines, last = programs_for(target, key)["command"].splitlines()
        assert last.startswith("machine open")
        place = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        said = await output("sh", "-ec", "\n".join(lines), typed=f"{key[1]}\n", env=place)
        assert "cpu_count" in said, said


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.skipif(
    not (NODE / "node_modules/@viamrobotics/sdk").exists(),
    reason="the TypeScript SDK is not installed: run tools/setup-node tests/e2e/typescript",
)
async def test_the_typescript_program_of_the_page_calls_the_machine(tmp_path: Path) -> None:
    """In Node, with the classes for WebRTC that the page names as a condition."""
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    async with connected(tmp_path) as (target, key):
        (tmp_path / "program.mjs").write_text(programs_for(target, key)["typescript"])
        command = ["node", "--import", str(NODE / "webrtc_globals.mjs"), "program.mjs"]
        process = await trio.lowlevel.open_process(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert process.stdout is not None
        said = ""
        try:
            with trio.fail_after(PATIENCE):
                async for part in process.stdout:  # its end, too, would be that of threads of the library for Node
                    said += part.decode()
                    if "cpu_count:" in said:
                        break
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
        assert "name: 'host'" in said, said
        assert "cpu_count:" in said, said
