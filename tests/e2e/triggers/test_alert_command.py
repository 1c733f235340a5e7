"""`machine cloud alerts` against a real cloud and a real receiver: rules, tests, previews, and the life of an alert."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio

from rpc.api.client import ApiClient
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal
from tests.e2e.triggers.receiver import receiver

SYNC = "viam.app.datasync.v1.DataSyncService"
LIMIT = 60.0  # seconds; each step takes one


async def measured(client: ApiClient, part: str, celsius: float) -> None:
    metadata = {"part_id": part, "component_type": "sensor", "component_name": "probe", "method_name": "Readings"}
    reading = {"metadata": {"time_requested": datetime.now(UTC)}, "struct": {"readings": {"celsius": celsius}}}
    await client.call(
        SYNC, "", "data_capture_upload", metadata={**metadata, "type": "TABULAR_SENSOR"}, sensor_contents=[reading]
    )


async def test_rules_and_the_life_of_an_alert(tmp_path: Path) -> None:
    async with (
        cloud(tmp_path / "cloud", "--webhook-allow", "127.0.0.1") as running,
        receiver() as hooks,
        running.client() as client,
    ):
        terminal = Terminal(running, tmp_path / "home")
        await terminal(
            "login", f"http://{running.address}", "--key-id", running.key[0], MACHINE_CLOUD_KEY=running.key[1]
        )
        place = running.facts["location"]
        app = "viam.app.v1.AppService"
        robot = await client.call(app, "", "new_robot", name="freezer", location=place)
        part = (await client.call(app, "", "get_robot_parts", robot_id=robot))[0]["id"]
        await measured(client, part, -20.0)
        rule: dict[str, Any] = {
            "name": "Freezer warm",
            "kind": "reading",
            "condition": {"path": "celsius", "comparison": "gt", "threshold": -15},
            "group_seconds": 0,
            "targets": [{"type": "webhook", "value": hooks.url()}],
        }
        file = tmp_path / "rule.json"
        file.write_text(json.dumps(rule))

        # rules
        assert "0 alerts since" in await terminal("alerts", "rules", "preview", str(file))
        subject = (await terminal("alerts", "rules", "set", str(file))).strip()
        listed = await terminal("alerts", "rules", "ls")
        assert "Disk nearly full" in listed
        assert subject in listed
        assert json.loads(await terminal("alerts", "rules", "show", "Freezer warm"))["condition"]["threshold"] == -15
        assert "answered" in await terminal("alerts", "rules", "test", "Freezer warm")
        file.write_text(json.dumps({**rule, "message": "{machine}: {value}"}))
        assert (await terminal("alerts", "rules", "set", str(file), "--rule", subject)).strip() == subject

        # an alert
        assert await terminal("alerts", "list") == "no alerts\n"
        await measured(client, part, -3.0)
        with trio.fail_after(LIMIT):
            while len(hooks.requests) < 2:
                await hooks.changed.wait()
        assert json.loads(hooks.requests[1].body)["subject"] == "freezer: -3"
        (alert,) = json.loads(await terminal("alerts", "list", "--json"))
        assert (alert["state"], alert["machine"], alert["value"]) == ("firing", "freezer", -3)
        short = alert["id"][:8]
        await terminal("alerts", "ack", short)
        await terminal("alerts", "silence", short, "--for", "4")
        assert "acknowledged, silenced" in await terminal("alerts", "list")
        await terminal("alerts", "silence", short, "--off")
        assert json.loads(await terminal("alerts", "show", short))["acknowledged_by"] == "owner"
        history = json.loads(await terminal("alerts", "history", "--json"))
        assert [event["kind"] for event in history] == ["unsilenced", "silenced", "acknowledged", "fired"]

        # silences of a rule and of a machine
        for option, name in (("--rule", "Freezer warm"), ("--machine", "freezer")):
            await terminal("alerts", "silence", option, name, "--for", "4")
            assert name in await terminal("alerts", "silences")
            assert "silenced" in await terminal("alerts", "list")
            await terminal("alerts", "silence", option, name, "--off")
            assert await terminal("alerts", "silences") == "nothing is silenced\n"

        # targets, and the end
        assert "ann@example.com" in await terminal("alerts", "notify", "--email", "ann@example.com")
        assert await terminal("alerts", "notify", "--remove", "ann@example.com") == "no targets\n"
        await terminal("alerts", "rules", "delete", "Freezer warm")
        assert await terminal("alerts", "list") == "no alerts\n"
