"""Requests to agents: who may make them, when they arrive, and when they expire."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
import trio
import trio.testing

from agent.control.report import AgentReport, ProgramReport, encode
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.permissions import audit
from cloud.domain.permissions.audit import AuditQuery
from cloud.domain.releases import requests
from cloud.server.memory import MemoryCloud
from cloud.services.agents import agent_requests
from cloud.work.openings import WAITING_AGENTS
from rpc.access.credential_types import API_KEY, PART_SECRET
from rpc.api.cloud_v1 import AGENTS
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock

LIMIT = 30.0
SERVER = "machine-server"
Reply = list[dict[str, Any]]


@pytest.fixture
async def agent(cloud: MemoryCloud, part: str) -> str:
    """Return the id of a part whose agent has reported."""
    report = encode(AgentReport(1.0, ProgramReport(), ProgramReport()))
    await cloud.client(part, PART_SECRET).call(AGENTS, "", "report_agent", part_id=part, report_json=report)
    return part


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cloud wait for no request at all."""
    monkeypatch.setattr(agent_requests, "REQUEST_WAIT", 0.0)


async def update(cloud: MemoryCloud, part: str, key: str = "", program: str = SERVER) -> None:
    await cloud.client(key).call(AGENTS, "", "mark_agent_for_update", part_id=part, program=program)


async def wait(cloud: MemoryCloud, part: str, *arrived: str, entity: str = "", kind: str = PART_SECRET) -> Reply:
    client = cloud.client(entity or part, kind)
    reply: Reply = await client.call(AGENTS, "", "wait_for_agent_requests", part_id=part, arrived=list(arrived))
    return reply


async def shown(cloud: MemoryCloud, part: str) -> list[tuple[str, str]]:
    state = await cloud.client().call(AGENTS, "", "get_agent_state", part_id=part)
    return [(entry["kind"], entry["program"]) for entry in state["requests"]]


async def test_a_request_reaches_an_agent_that_waits(cloud: MemoryCloud, agent: str) -> None:
    replies: list[Reply] = []

    async def follow() -> None:
        replies.append(await wait(cloud, agent))

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert replies == []
            await update(cloud, agent)
    assert [(entry["kind"], entry["program"]) for entry in replies[0]] == [("update", SERVER)]


async def test_a_request_waits_for_an_agent_and_is_kept_until_it_has_arrived(
    cloud: MemoryCloud, agent: str, short: None
) -> None:
    await update(cloud, agent)
    await cloud.client().call(AGENTS, "", "mark_agent_for_check", part_id=agent)
    assert await shown(cloud, agent) == [("update", SERVER), ("check", "")]
    first = await wait(cloud, agent)
    assert first == await wait(cloud, agent)  # the agent has received the first answer, or not
    assert await wait(cloud, agent, *(entry["id"] for entry in first)) == []
    assert await shown(cloud, agent) == []


async def test_a_repeated_request_is_another_one(cloud: MemoryCloud, agent: str, short: None) -> None:
    await update(cloud, agent)
    (first,) = await wait(cloud, agent)
    await update(cloud, agent)
    (second,) = await wait(cloud, agent, first["id"])
    assert second["id"] != first["id"]


async def test_an_old_request_is_forgotten(cloud: MemoryCloud, agent: str, clock: Clock, short: None) -> None:
    await update(cloud, agent)
    clock.now += requests.EXPIRY - timedelta(minutes=1)
    assert await wait(cloud, agent)
    clock.now += timedelta(minutes=2)
    assert await wait(cloud, agent) == []
    assert await shown(cloud, agent) == []
    assert await cloud.cloud.store.write(lambda sql: requests.expire(sql, clock())) == 1


async def test_a_machine_without_an_agent_and_another_program_are_refused(
    cloud: MemoryCloud, part: str, machine: str
) -> None:
    with pytest.raises(MachineError, match="no machine-agent has reported") as caught:
        await update(cloud, part)
    assert caught.value.kind is ErrorKind.PRECONDITION
    with pytest.raises(MachineError, match="there is no program") as caught:
        await update(cloud, part, program="machine-cloud")
    assert caught.value.kind is ErrorKind.INVALID


async def test_operators_may_request_and_the_audit_log_names_them(
    cloud: MemoryCloud, agent: str, clock: Clock, short: None
) -> None:
    owner = cloud.first.organization
    grants = [Grant("operator", "organization", owner)]
    key, _ = await cloud.cloud.store.write(lambda sql: create_key(sql, owner, "op", grants, clock()))
    await update(cloud, agent, key)
    assert await shown(cloud, agent) == [("update", SERVER)]
    entry = (await cloud.cloud.store.read(lambda sql: audit.entries(sql, owner, AuditQuery())))[0]
    assert (entry.action, entry.subject, entry.author.name) == ("mark_agent_for_update", agent, key)
    assert entry.detail["program"] == SERVER


async def test_other_machines_tenants_and_people_get_no_requests(
    cloud: MemoryCloud, agent: str, clock: Clock, short: None
) -> None:
    robot = await cloud.app("new_robot", name="other", location=cloud.first.location)
    other = (await cloud.app("get_robot_parts", robot_id=robot))[0]["id"]
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Stranger", clock()))
    owner = cloud.first.organization
    grants = [Grant("operator", "organization", owner)]
    operator, _ = await cloud.cloud.store.write(lambda sql: create_key(sql, owner, "op", grants, clock()))
    await update(cloud, agent)
    ((id_),) = [entry["id"] for entry in await wait(cloud, agent)]
    for entity, kind, expected in (
        (other, PART_SECRET, ErrorKind.NOT_FOUND),
        (stranger.id, API_KEY, ErrorKind.NOT_FOUND),
        (operator, API_KEY, ErrorKind.PERMISSION),
    ):
        with pytest.raises(MachineError) as caught:
            await wait(cloud, agent, id_, entity=entity, kind=kind)
        assert caught.value.kind is expected
    with pytest.raises(MachineError) as caught:
        await update(cloud, agent, stranger.id)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await wait(cloud, other, id_) == []  # of the other part, with the id of a request that is not its own
    assert await shown(cloud, agent) == [("update", SERVER)]


async def test_an_agent_whose_secret_is_revoked_waits_no_longer(cloud: MemoryCloud, agent: str) -> None:
    caught: list[MachineError] = []

    async def follow() -> None:
        try:
            await wait(cloud, agent)
        except MachineError as error:
            caught.append(error)

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked(0.05)
            robots = await cloud.app("list_robots", location_id=cloud.first.location)
            await cloud.app("delete_robot", id=robots[0]["id"])
    assert caught


async def test_calls_that_wait_are_limited(cloud: MemoryCloud, agent: str) -> None:
    with ExitStack() as stack:
        for _ in range(WAITING_AGENTS):
            stack.enter_context(cloud.cloud.openings.hold(f"the agent of {agent}", WAITING_AGENTS))
        with pytest.raises(MachineError) as caught:
            await wait(cloud, agent)
    assert caught.value.kind is ErrorKind.EXHAUSTED
    with pytest.raises(MachineError) as caught:
        await wait(cloud, agent, *["x"] * 21)
    assert caught.value.kind is ErrorKind.INVALID


async def test_a_call_that_waits_ends_when_the_port_closes(cloud: MemoryCloud, agent: str) -> None:
    replies: list[Reply] = []
    port = trio.CancelScope()

    async def serve() -> None:
        with port:
            await agent_requests.end_waiting(cloud.cloud)

    async def follow() -> None:
        replies.append(await wait(cloud, agent))

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked(0.05)
            port.cancel()
        assert replies == [[]]
        assert await wait(cloud, agent) == []
