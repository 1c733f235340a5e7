"""`machine cloud fleet` against a real cloud: lists, tags, views, and changes of many machines."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal

APP = "viam.app.v1.AppService"
ARM = {"components": [{"name": "arm", "api": "rdk:component:arm", "model": "fake", "attributes": {"speed": 1}}]}


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[Terminal]:
    """Yield a terminal that is logged in to a cloud with three machines, of which one has no arm."""
    async with cloud(tmp_path / "cloud") as running:
        user = Terminal(running, tmp_path / "home")
        await user("login", f"http://{running.address}", "--key-id", running.key[0], MACHINE_CLOUD_KEY=running.key[1])
        async with running.client() as client:
            for name in ("press-1", "press-2", "bare"):
                robot = await client.call(APP, "", "new_robot", name=name, location=running.facts["location"])
                part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
                document = {} if name == "bare" else ARM
                await client.call(APP, "", "update_robot_part", id=part, robot_config_json=json.dumps(document))
        yield user


async def test_machines_are_tagged_changed_and_undone(terminal: Terminal) -> None:
    await terminal("fleet", "tag", "press-1", "red", "big")
    assert await terminal("fleet", "tags", "press-1") == "big\nred\n"
    assert await terminal("fleet", "untag", "press-1", "big") == "red\n"
    await terminal("fleet", "add-tags", "red", "-m", "press-2", "-m", "bare", "--yes")
    listed = json.loads((await terminal("fleet", "ls", "--tag", "red", "--json")).splitlines()[0])
    assert [each["name"] for each in listed] == ["bare", "press-1", "press-2"]

    change = ("fleet", "set", "components.arm.attributes.speed", "3", "--tag", "red")
    preview = await terminal(*change, "--preview")
    assert "2 of 3 machines would change" in preview
    assert "bare cannot be changed: there is no components.arm" in preview
    assert "Start?" in await terminal(*change, source="n\n", status=1)
    assert len(json.loads(await terminal("fleet", "jobs", "--json"))) == 1
    done = await terminal(*change, "--yes")
    assert "done: 2 changed, 1 failed" in done
    job = done.partition("job ")[2].partition(":")[0]
    assert '"speed":3' in (await terminal("config", "get", "press-1")).replace(" ", "").replace("\n", "")
    shown = await terminal("fleet", "show", job, "--outcome", "failed")
    assert "there is no components.arm" in shown
    assert "press-1" not in shown.partition("\n")[2]
    undone = json.loads(await terminal("fleet", "undo", job, "--json"))
    assert (undone["state"], undone["changed"], undone["undo_of"]) == ("done", 2, job)
    assert '"speed":1' in (await terminal("config", "get", "press-1")).replace(" ", "").replace("\n", "")
    await terminal("fleet", "stop", job)


async def test_views_and_mistakes(terminal: Terminal) -> None:
    await terminal("fleet", "save-view", "Bare ones", "q=bare&sort=state", "--shared")
    assert "Bare ones" in await terminal("fleet", "views")
    listed = await terminal("fleet", "ls", "--view", "Bare ones")
    assert "bare" in listed
    assert "press" not in listed
    assert "Bare ones was deleted" in await terminal("fleet", "delete-view", "Bare ones")
    assert "select machines" in await terminal("fleet", "restart", status=2)
    assert "select machines" in await terminal("fleet", "restart", "--every", "--tag", "red", status=2)
    assert "give --yes" in await terminal("fleet", "restart", "--every", "--json", status=2)
    assert "there is no machine" in await terminal("fleet", "tag", "nobody", "red", status=1)
