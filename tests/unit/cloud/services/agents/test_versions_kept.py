"""A version that is mistyped or was never published: the machine keeps what it runs, and the status says why."""

from __future__ import annotations

from typing import Any

import pytest

from cloud.server.memory import MemoryCloud
from cloud.values.author import PART
from rpc.api.cloud_v1 import AGENTS
from tests.unit.cloud.release_help import opened, publish

CALL = "viam.app.agent.v1.AgentDeviceService"


async def asked(cloud: MemoryCloud, part: str, running: str) -> Any:
    return await cloud.client(part, PART).call(
        CALL,
        "",
        "device_agent_config",
        id=part,
        host_info={"platform": "linux/amd64"},
        version_info={"viam_server_running": running},
    )


async def use(cloud: MemoryCloud, part: str, version: Any) -> None:
    document = {"agent": {"version_control": {"machine-server": version}, "advanced_settings": {"debug": True}}}
    await cloud.app("update_robot_part", id=part, name="", robot_config=document)


@pytest.mark.parametrize("wrong", ["banana", "1.0", 5, "9.9.9", "", ["1.0.0"]])
async def test_a_mistake_never_updates_a_machine(cloud: MemoryCloud, part: str, wrong: Any) -> None:
    person = await opened(cloud, "1.0.0", channels=["stable"])
    person.add("2.0.0", b"program 2.0.0", ["stable"])
    await publish(cloud, person)
    await use(cloud, part, "1.0.0")
    answer = await asked(cloud, part, "1.0.0")
    assert answer["viam_server_update_info"]["version"] == "1.0.0"
    assert answer["advanced_settings"] == {"debug": True}

    await use(cloud, part, wrong)
    answer = await asked(cloud, part, "1.0.0")
    assert answer["viam_server_update_info"]["version"] == "1.0.0"
    (sent,) = answer["advanced_settings"]["version_problems"]
    (problem,) = (await cloud.client().call(AGENTS, "", "get_agent_state", part_id=part))["problems"]
    assert sent == problem
    assert problem["path"] == "agent.version_control.machine-server"
    assert "the machine keeps the version that it runs" in problem["message"]
    assert problem["remedy"]
    if wrong == "9.9.9":
        assert "version 9.9.9 of machine-server is not published for linux/x86_64" in problem["message"]
        assert "2.0.0, 1.0.0" in problem["remedy"]

    await use(cloud, part, "stable")
    answer = await asked(cloud, part, "1.0.0")
    assert answer["viam_server_update_info"]["version"] == "2.0.0"
    assert answer["advanced_settings"] == {"debug": True}
    assert not (await cloud.client().call(AGENTS, "", "get_agent_state", part_id=part))["problems"]


async def test_without_a_published_version_that_runs_nothing_is_offered(cloud: MemoryCloud, part: str) -> None:
    await opened(cloud, "2.0.0", channels=["stable"])
    for wrong in ("banana", "1.0.0"):
        await use(cloud, part, wrong)
        assert not (await asked(cloud, part, "0.9.0")).get("viam_server_update_info")
        assert len((await cloud.client().call(AGENTS, "", "get_agent_state", part_id=part))["problems"]) == 1


async def test_a_version_that_runs_needs_not_be_published(cloud: MemoryCloud, part: str) -> None:
    await use(cloud, part, "1.4.2")
    answer = await asked(cloud, part, "1.4.2")
    assert not answer.get("viam_server_update_info")
    assert answer["advanced_settings"] == {"debug": True}
