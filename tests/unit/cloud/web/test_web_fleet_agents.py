"""Lists of machines by what their agents report: the page, the call and the command."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
import trio

from agent.control.report import AgentReport, ProblemReport, ProgramReport, WaitReport, encode
from agent.update.record import UpdateOutcome, UpdateResult
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.server.memory import MemoryCloud
from cloud.web.views.fleet.fleet_view import choices
from command.cloud.show import Part, fleet, with_agents
from rpc.access.credential_types import PART_SECRET
from rpc.api.cloud_v1 import AGENTS
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, signed_in

LIMIT = 30.0
FAILED = UpdateOutcome("1.2.0", "1.3.0", "a" * 64, UpdateResult.ROLLED_BACK, "it hangs", 1.0, 2.0)


def own(version: str) -> ProgramReport:
    return ProgramReport(version=version, running=True, serving=True)


REPORTS = {
    "rover": AgentReport(9.0, own("1.0.0"), own("1.2.0")),
    "oven": AgentReport(
        9.0,
        own("1.0.0"),
        ProgramReport(version="1.2.0", target="1.3.0", step="wait", waiting_for=(WaitReport("the door is open", 1.0),)),
    ),
    "pump": AgentReport(
        9.0, own("1.1.0"), ProgramReport(version="1.2.0", history=(FAILED,)), problems=(ProblemReport("a", "b"),)
    ),
    "arm": None,
}
CASES = [
    ({}, {"rover", "oven", "pump", "arm"}),
    ({"agent": "1.0.0"}, {"rover", "oven"}),
    ({"agent": "1.1.0"}, {"pump"}),
    ({"agent": "1"}, set()),
    ({"server": "1.2.0"}, {"rover", "oven", "pump"}),
    ({"update": "updating"}, {"oven"}),
    ({"update": "waiting"}, {"oven"}),
    ({"update": "rolled_back"}, {"pump"}),
    ({"update": "problems"}, {"pump"}),
    ({"update": "no-such"}, set()),
    ({"agent": "1.0.0", "update": "waiting"}, {"oven"}),
    ({"agent": "1.1.0", "update": "waiting"}, set()),
]


@pytest.fixture
async def parts(cloud: MemoryCloud) -> dict[str, str]:
    """Create machines whose agents have reported; return the ids of their parts."""
    created = {}
    for name, report in REPORTS.items():
        robot = await cloud.app("new_robot", name=name, location=cloud.first.location)
        created[name] = (await cloud.app("get_robot_parts", robot_id=robot))[0]["id"]
        if report is not None:
            await send(cloud, created[name], report)
    return created


async def send(cloud: MemoryCloud, part: str, report: AgentReport) -> None:
    client = cloud.client(part, PART_SECRET)
    await client.call(AGENTS, "", "report_agent", part_id=part, report_json=encode(report))


@pytest.mark.parametrize(("query", "shown"), CASES, ids=str)
async def test_the_page_filters(
    cloud: MemoryCloud, parts: dict[str, str], query: dict[str, str], shown: set[str]
) -> None:
    text = "&".join(f"{key}={value}" for key, value in query.items())
    page = (await (await signed_in(cloud)).get(f"/?{text}")).text
    assert {name for name in REPORTS if f">{name}</a>" in page} == shown
    for name in query:
        assert f'<select name="{name}">' in page
    live = re.search(r'data-live="([^"]*)"', page)
    assert live is not None
    assert all(f"{key}={value}" in live[1] for key, value in query.items())


@pytest.mark.parametrize(("query", "shown"), CASES, ids=str)
async def test_the_command_filters(
    cloud: MemoryCloud, parts: dict[str, str], query: dict[str, str], shown: set[str]
) -> None:
    agents: list[dict[str, Any]] = await cloud.client().call(AGENTS, "", "list_agents")
    all_parts = [Part("home", name, name, id_, True, "online", None, "") for name, id_ in parts.items()]
    filters = (query.get("agent", ""), query.get("server", ""), query.get("update", ""))
    matching = with_agents(all_parts, agents, *filters)
    assert {part.machine for part in matching} == shown - {"arm"}
    if "oven" in shown:
        lines = fleet(matching, datetime.now(UTC))
        assert "UPDATES" in lines[0]
        assert any("1.2.0" in line and "updating, waiting" in line for line in lines)


async def test_the_list_contains_only_what_the_caller_may_see(
    cloud: MemoryCloud, parts: dict[str, str], clock: Clock
) -> None:
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Stranger", clock()))
    assert await cloud.client(stranger.id).call(AGENTS, "", "list_agents") == []
    machine = (await cloud.app("get_robot_part", id=parts["rover"]))["part"]["robot"]
    grants = [Grant("operator", "robot", machine)]
    owner = cloud.first.organization
    key, _ = await cloud.cloud.store.write(lambda sql: create_key(sql, owner, "op", grants, clock()))
    (agent,) = await cloud.client(key).call(AGENTS, "", "list_agents")
    assert (agent["part_id"], agent["agent_version"], agent["states"]) == (parts["rover"], "1.0.0", [])


async def test_rows_follow_the_reports_of_agents(cloud: MemoryCloud, parts: dict[str, str]) -> None:
    person = await signed_in(cloud)
    with trio.fail_after(LIMIT):
        async with person.live("/live/machines?update=rolled_back", {"origin": f"http://{HOST}"}) as page:

            async def rows() -> str:
                while not (patch := (await page.next()).get("patch", {})):
                    pass
                return "".join(patch.values())

            assert ">pump</a>" in (first := await rows())
            assert ">rover</a>" not in first
            failed = ProgramReport(version="1.2.0", history=(FAILED,))
            await send(cloud, parts["rover"], AgentReport(9.0, own("1.0.0"), failed))
            assert ">rover</a>" in await rows()


async def test_versions_of_a_hostile_machine_are_escaped_and_limited(cloud: MemoryCloud, parts: dict[str, str]) -> None:
    await send(cloud, parts["arm"], AgentReport(9.0, own('"><script>alert(1)</script>'), own("1.2.0")))
    page = (await (await signed_in(cloud)).get("/")).text
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert choices(["1.0.0"], "selected") == [("1.0.0", "1.0.0"), ("selected", "selected")]
