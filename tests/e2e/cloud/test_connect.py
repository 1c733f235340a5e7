"""The programs of the tab Connect, run as they stand on the page."""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from cloud.web.views.connect import Target, snippets
from tests.e2e.cloud.process import cloud
from tests.e2e.server.process import server

APP = "viam.app.v1.AppService"
DOCUMENT = '{"components": [{"name": "host", "api": "rdk:component:sensor", "model": "host"}]}'


async def output(*command: str) -> str:
    with trio.fail_after(60):
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


async def test_programs_of_the_page_call_the_machine(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running:
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="it's", location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
            await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=DOCUMENT)
            grant = {"authorization_id": "robot_operator", "resource_type": "robot", "resource_id": robot}
            key = await client.call(APP, "", "create_key", authorizations=[grant], name="programs")
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        (tmp_path / "machine").mkdir()
        async with server(tmp_path / "machine", {"cloud": credentials}, "-disable-mdns", running=True) as machine:
            home, pages = f"http://{running.address}", f"http://{machine.address}"
            target = Target("it's", part["id"], home, pages=pages, sensor="host")
            programs = {snippet.id: snippet.text for snippet in snippets(target, key["id"], key["key"])}
            said = await output(sys.executable, "-c", programs["python"])
            assert "'cpu_count'" in said, said
            assert '"cpu_count"' in await output("sh", "-c", programs["curl"])
            without_sensor = snippets(Target("it's", part["id"], home, pages=pages), key["id"], key["key"])[-1].text
            assert '"host"' in await output("sh", "-c", without_sensor)
