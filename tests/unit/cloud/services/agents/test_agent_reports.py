"""Reports of agents: what is accepted, from whom, and what is answered."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from agent.control.report import (
    AgentReport,
    ExitReport,
    PartReport,
    ProblemReport,
    ProgramReport,
    SystemReport,
    WaitReport,
    encode,
)
from agent.update.record import QuarantinedRelease, UpdateOutcome, UpdateResult
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.server.memory import MemoryCloud
from rpc.access.credential_types import API_KEY, PART_SECRET
from rpc.api.cloud_v1 import AGENTS
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock

PROGRAM = ProgramReport(
    version="1.0.0", sha256="a" * 64, running=True, since=1.0, serving=True, previous="0.9.0", target="1.1.0",
    step="wait", step_since=2.0, deadline=3.0, pausing=True, error="no space",
    waiting_for=(WaitReport("a window", 4.0),),
    restart=WaitReport("the settings changed", 5.0), restart_waiting_for=(WaitReport("a lease", 5.0),), hold_until=6.0,
    quarantine=(QuarantinedRelease("b" * 64, "1.0.1", "it did not serve", 7.0),),
    history=(UpdateOutcome("0.9.0", "1.0.0", "a" * 64, UpdateResult.UPDATED, "it serves", 8.0, 9.0),),
    exits=(ExitReport(10.0, "killed by signal 9", 11.0),),
)  # fmt: skip
FULL = AgentReport(
    1.0,
    PROGRAM,
    PROGRAM,
    offline="unreachable",
    disabled=True,
    problems=(ProblemReport("agent.x", "is wrong", "remove it"),),
    system=SystemReport(("etc/a",)),
    parts=(PartReport("log", "ready"), PartReport("updates", "unhealthy", "RecursionError: too deep", 12.0)),
)


async def send(cloud: MemoryCloud, part: str, body: bytes, entity: str = "", kind: str = PART_SECRET) -> None:
    """Send a report of a part, by default as this part."""
    await cloud.client(entity or part, kind).call(AGENTS, "", "report_agent", part_id=part, report_json=body)


async def state(cloud: MemoryCloud, part: str) -> Any:
    answer = await cloud.client().call(AGENTS, "", "get_agent_state", part_id=part)
    return {**answer, "report": json.loads(answer["report_json"] or "null")}


async def test_nothing_of_an_agents_report_is_lost(cloud: MemoryCloud, part: str) -> None:
    assert (await state(cloud, part))["report"] is None
    await send(cloud, part, encode(FULL))
    answer = await state(cloud, part)
    assert msgspec.convert(answer["report"], AgentReport, strict=False) == FULL
    assert [(entry["program"], entry["version"], entry["result"]) for entry in answer["outcomes"]] == [
        ("machine-agent", "1.0.0", "updated"),
        ("machine-server", "1.0.0", "updated"),
    ]
    assert answer["received"]


async def test_a_repeated_report_has_its_outcomes_once(cloud: MemoryCloud, part: str) -> None:
    for _ in range(3):
        await send(cloud, part, encode(FULL))
    assert len((await state(cloud, part))["outcomes"]) == 2


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"format": 2, "time": 1}', "format 2, but this cloud reads format 1"),
        (b'{"time": 1}', "missing required field `format`"),
        (b'{"format": 1, "time": 1e999}', "not valid"),
        (b'{"format": 1, "time": 1, "offline": "\\ud800"}', "not valid"),
        (b'{"format": 1, "time": 1, "server": {"version": "' + b"x" * 301 + b'"}}', "<= 300"),
        (b'{"format": 1, "time": 1, "server": {"waiting_for": 5}}', "not valid"),
        (b'{"format": 1, "time": 1, "x": ' + b"[" * 3000 + b"]" * 3000 + b"}", "not valid"),
        (b"\xff", "not valid"),
        (b"x" * (64 * 1024 + 1), "agent_report"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_invalid_reports_are_refused_and_not_stored(
    cloud: MemoryCloud, part: str, body: bytes, text: str
) -> None:
    with pytest.raises(MachineError, match=text) as caught:
        await send(cloud, part, body)
    assert caught.value.kind is ErrorKind.INVALID
    assert (await state(cloud, part))["report"] is None


async def test_hostile_characters_are_replaced_and_unknown_fields_dropped(cloud: MemoryCloud, part: str) -> None:
    body = {"format": 1, "time": 1, "offline": "a\x00b\x1b[2J\u202ec", "secret": "x", "server": {"version": "1\x00"}}
    await send(cloud, part, json.dumps(body).encode())
    report = (await state(cloud, part))["report"]
    assert report["offline"] == "a\ufffdb\ufffd[2J\ufffdc"
    assert "secret" not in report


async def test_other_machines_and_tenants_are_refused(cloud: MemoryCloud, part: str) -> None:
    robot = await cloud.app("new_robot", name="other", location=cloud.first.location)
    other = (await cloud.app("get_robot_parts", robot_id=robot))[0]["id"]
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Stranger", cloud.cloud.clock()))
    for entity, kind in ((other, PART_SECRET), (stranger.id, API_KEY)):
        with pytest.raises(MachineError) as caught:
            await send(cloud, part, encode(FULL), entity, kind)
        assert caught.value.kind is ErrorKind.NOT_FOUND
        with pytest.raises(MachineError):
            await cloud.client(entity, kind).call(AGENTS, "", "get_agent_state", part_id=part)
    assert (await state(cloud, part))["report"] is None


async def test_operators_read_reports_and_send_none(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    grants = [Grant("operator", "organization", cloud.first.organization)]
    key, _ = await cloud.cloud.store.write(lambda sql: create_key(sql, cloud.first.organization, "op", grants, clock()))
    with pytest.raises(MachineError) as caught:
        await send(cloud, part, encode(FULL), key, API_KEY)
    assert caught.value.kind is ErrorKind.PERMISSION
    await send(cloud, part, encode(FULL))
    assert (await cloud.client(key).call(AGENTS, "", "get_agent_state", part_id=part))["outcomes"]
