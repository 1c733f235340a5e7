"""`machine cloud rollouts` against a real cloud: a fragment is saved, rolled out and taken back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal

APP = "viam.app.v1.AppService"


async def test_a_fragment_is_rolled_out_and_taken_back(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running:
        terminal = Terminal(running, tmp_path / "home")
        key = running.key
        await terminal("login", f"http://{running.address}", "--key-id", key[0], MACHINE_CLOUD_KEY=key[1])
        await terminal("fragments", "create", "arms", "-", source="{}")
        subject = json.loads((await terminal("fragments", "ls", "--json")).splitlines()[0])["id"]
        async with running.client() as client:
            for number in range(4):
                robot = await client.call(
                    APP, "", "new_robot", name=f"press-{number}", location=running.facts["location"]
                )
                part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
                text = json.dumps({"fragments": [subject]})
                await client.call(APP, "", "update_robot_part", id=part, robot_config_json=text)
        new = '{"components": [{"name": "arm", "api": "rdk:component:arm", "model": "fake"}]}'
        assert "no rollouts" in await terminal("rollouts", "ls")
        assert "revision 2" in await terminal("fragments", "set", "arms", "-", "--for-rollout", source=new)
        chosen = ("rollouts", "start", "arms", "--stage", "25%", "--stage", "100", "--stop-after", "25%", "--by-hand")
        preview = await terminal(*chosen, "--preview")
        assert "4 of 4 machines" in preview
        for share, number in (("50%", 2), ("49%", 1), ("0", 0)):
            shown = await terminal("rollouts", "start", "arms", "--stop-after", share, "--preview")
            assert f"stops when more than {number} machines fail" in shown
        for wrong in ("-1", "101%", "nan%", "2.5", "some"):
            refused = await terminal("rollouts", "start", "arms", f"--stop-after={wrong}", status=2)
            assert "such as 5%" in refused
        assert "is not a stage" in await terminal("rollouts", "start", "arms", "--stage", "some", status=2)
        await terminal(*chosen)
        shown = await terminal("rollouts", "show", "arms")
        assert "arms 1 -> 2: active" in shown
        assert "started by owner" in shown
        assert json.loads(await terminal("rollouts", "ls", "--json"))[0]["plan"]["stop_after"] == 1
        assert "paused, stage 1 of 2" in await terminal("rollouts", "pause", "arms")
        await terminal("rollouts", "stop", "arms")
        assert "stopped by a person" in await terminal("rollouts", "follow", "arms", status=3)
        await terminal("rollouts", "resume", "arms")
        assert "stage 2 of 2" in await terminal("rollouts", "next", "arms")
        listed = json.loads(await terminal("rollouts", "machines", "arms", "--json"))
        assert sorted(each["stage"] for each in listed) == [0, 1, 1, 1]
        assert "arms 1 -> 2: reverted" in await terminal("rollouts", "back", "arms")
        assert "arms 1 -> 2: reverted, stage 2 of 2: 0 of 4" in await terminal("rollouts", "follow", "arms", status=4)
        assert "there is no rollout 'legs'" in await terminal("rollouts", "show", "legs", status=1)
        assert json.loads(await terminal("rollouts", "ls", "--json"))[0]["state"] == "reverted"
