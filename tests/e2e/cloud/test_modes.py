"""What a cloud and a machine leave on their disks cannot be read by other users of the computer."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

import trio

from support.files.private import OTHERS
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_sync import APP, LIMIT, document, kept, until
from tests.e2e.modules.support import component, program
from tests.e2e.server.process import server

USUAL: Final = 0o022  # the umask of most systems, with which files can be read by others


def open_paths(folder: Path) -> list[str]:
    """Return paths below a folder, with their modes, for which group or others have a permission."""
    result = []
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & OTHERS:
                result.append(f"{path.relative_to(folder)} {stat.S_IMODE(mode):04o}")
    return sorted(result)


def configuration(folder: Path) -> dict[str, Any]:
    """Return a configuration with a module, capture, and the flight recorder."""
    captured = document(folder / "captured")
    air = component("air", "sensor", "acme:demo:thermometer")
    return {
        **captured,
        "modules": [{"name": "demo", "executable_path": str(program(folder / "module"))}],
        "components": [*captured["components"], air],
    }


def has_run(home: Path) -> bool:
    """Return whether the module has run."""
    return any(home.rglob("module-data/*/demo"))


async def test_other_users_read_nothing_that_a_run_leaves(tmp_path: Path) -> None:
    home = tmp_path / "machine"
    home.mkdir()
    before = os.umask(USUAL)
    try:
        async with cloud(tmp_path / "cloud") as running:
            async with running.client() as client:
                robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
                part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
                text = json.dumps(configuration(tmp_path))
                await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)
            credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}

            async def stored() -> bool:
                return all(await kept(running, running.key, part["id"])) and await trio.to_thread.run_sync(
                    has_run, home
                )

            async with server(home, {"cloud": credentials}, "-disable-mdns") as machine:
                with trio.fail_after(LIMIT):
                    await until(stored)
                await machine.stop()
            await running.stop()
    finally:
        os.umask(before)
    paths = [
        path
        for place in (home / "home", tmp_path / "captured", tmp_path / "cloud" / "data")
        for path in open_paths(place)
    ]
    assert paths == []
    assert len(list((home / "home").rglob("*"))) > 5
    assert len(list((tmp_path / "captured").rglob("*"))) > 1
