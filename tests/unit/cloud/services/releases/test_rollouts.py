"""Rollouts: releases offered to agents, and how reports stop a rollout."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.releases import reports
from cloud.domain.releases.decision import share
from cloud.server.memory import MemoryCloud
from cloud.services.agents.agent_service import AgentService
from cloud.values.author import KEY, PART, Author
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.release_help import PLATFORM, SERVER, opened, publish, service

AGENT = "viam.app.agent.v1.AgentDeviceService"


async def refused(kind: ErrorKind, call: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await call
    assert caught.value.kind is kind, caught.value
    return str(caught.value)


async def update_info(cloud: MemoryCloud, part: str, running: str = "", tags: tuple[str, ...] = ()) -> Any:
    host = {"platform": "linux/amd64", "tags": list(tags)}
    reply = await cloud.client(part, PART).call(
        AGENT, "", "device_agent_config", id=part, host_info=host, version_info={"viam_server_running": running}
    )
    return reply.get("viam_server_update_info")


async def version(cloud: MemoryCloud, part: str, running: str = "", tags: tuple[str, ...] = ()) -> str | None:
    info = await update_info(cloud, part, running, tags)
    return info["version"] if info else None


async def use(cloud: MemoryCloud, part: str, channel: str) -> None:
    document = {"agent": {"version_control": {"machine-server": channel}}}
    await cloud.app("update_robot_part", id=part, name="", robot_config=document)


async def parts(cloud: MemoryCloud, count: int) -> list[str]:
    created = []
    for number in range(count):
        robot = await cloud.app("new_robot", name=f"m{number}", location=cloud.first.location)
        created.append((await cloud.app("get_robot_parts", robot_id=robot))[0]["id"])
    return created


def report(new: str, result: str, ended: float = 1.0, **more: Any) -> str:
    outcome = {
        "version_from": "1.0.0",
        "version_to": new,
        "sha256": "a" * 64,
        "result": result,
        "reason": "it did not serve",
        "began": 0.5,
        "ended": ended,
    }
    return json.dumps(
        {"format": 1, "time": 1.0, "agent": {}, "server": {"version": "1.0.0", "history": [outcome], **more}}
    )


async def send(cloud: MemoryCloud, part: str, text: str) -> None:
    await AgentService(cloud.cloud, Author(PART, part)).report_agent(part, text.encode())


async def test_versions_come_from_the_repository(cloud: MemoryCloud, part: str) -> None:
    await opened(cloud, "1.0.0", "1.1.0-rc.1")
    await use(cloud, part, "stable")
    assert await update_info(cloud, part) is None
    await use(cloud, part, "dev")
    info = await update_info(cloud, part)
    assert info["version"] == "1.1.0-rc.1"
    assert info["sha256"] == hashlib.sha256(b"program 1.1.0-rc.1").digest()
    assert info["filename"] == "machine-server-v1.1.0-rc.1-x86_64"
    assert info["url"].startswith("http://cloud.test/releases/files/")
    await use(cloud, part, "1.0.0")
    assert await version(cloud, part) == "1.0.0"
    await use(cloud, part, "https://example.test/own")
    assert await version(cloud, part) == "customURL"


async def test_a_rollout_from_its_start_to_its_end(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0", channels=["stable"])
    machines = await parts(cloud, 12)
    for part in machines:
        await use(cloud, part, "stable")
    calls = service(cloud)
    person.add("2.0.0", b"program 2.0.0")
    await publish(cloud, person)
    await calls.start_rollout(person.owner, SERVER, "2.0.0", 50.0, stop_after=1)
    person.add("2.0.0", b"program 2.0.0", ["dev", "stable"])
    await publish(cloud, person)
    row = await cloud.cloud.store.read(lambda sql: sql.row("SELECT id FROM rollouts"))
    assert row is not None
    early = [part for part in machines if share(row["id"], part) < 50]
    assert [part for part in machines if await version(cloud, part) == "2.0.0"] == early
    await calls.set_rollout_state(person.owner, SERVER, "2.0.0", "paused")
    assert {await version(cloud, part) for part in machines} == {"1.0.0"}
    assert await version(cloud, machines[0], running="2.0.0") == "2.0.0"
    await calls.set_rollout_state(person.owner, SERVER, "2.0.0", "active")
    await refused(ErrorKind.PRECONDITION, calls.start_rollout(person.owner, SERVER, "2.0.0", 40.0))
    await refused(ErrorKind.PRECONDITION, calls.start_rollout(person.owner, SERVER, "2.0.0", 60.0, tags=["a"]))
    assert (await calls.start_rollout(person.owner, SERVER, "2.0.0", 60.0)).stop_after == 1
    await calls.set_rollout_state(person.owner, SERVER, "2.0.0", "finished")
    assert {await version(cloud, part) for part in machines} == {"2.0.0"}
    await refused(ErrorKind.PRECONDITION, calls.set_rollout_state(person.owner, SERVER, "2.0.0", "paused"))
    await refused(ErrorKind.PRECONDITION, calls.start_rollout(person.owner, SERVER, "2.0.0", 100.0))


async def test_tags_and_locations(cloud: MemoryCloud, machine: str, part: str) -> None:
    person = await opened(cloud, "1.0.0", channels=["stable"])
    await use(cloud, part, "stable")
    person.add("2.0.0", b"program 2.0.0")
    person.add("3.0.0", b"program 3.0.0")
    await publish(cloud, person)
    calls, first = service(cloud), cloud.first
    await refused(ErrorKind.NOT_FOUND, calls.start_rollout(person.owner, SERVER, "2.0.0", location_ids=["absent"]))
    await calls.start_rollout(person.owner, SERVER, "2.0.0", tags=["beta"], location_ids=[first.location])
    text = await refused(ErrorKind.PRECONDITION, calls.start_rollout(person.owner, SERVER, "3.0.0"))
    assert "2.0.0 is not finished" in text
    person.add("2.0.0", b"program 2.0.0", ["stable"])
    await publish(cloud, person)
    assert await version(cloud, part) == "1.0.0"
    assert await version(cloud, part, tags=("beta",)) == "2.0.0"
    assert await version(cloud, part, tags=("alpha",)) == "1.0.0"
    await cloud.app("update_robot_metadata", id=machine, data={"tags": ["beta", 5]})
    assert await version(cloud, part) == "2.0.0"


@pytest.mark.parametrize(
    ("program", "name", "changes", "kind"),
    [
        (SERVER, "9.9.9", {}, ErrorKind.NOT_FOUND),
        ("machine-agent", "1.0.0", {}, ErrorKind.NOT_FOUND),
        (SERVER, "1.0.0", {}, ErrorKind.PRECONDITION),  # is in stable
        (SERVER, "2.0.0", {"percent": 0.0}, ErrorKind.INVALID),
        (SERVER, "2.0.0", {"percent": 101.0}, ErrorKind.INVALID),
        (SERVER, "2.0.0", {"percent": float("nan")}, ErrorKind.INVALID),
        (SERVER, "2.0.0", {"stop_after": -1}, ErrorKind.INVALID),
        (SERVER, "2.0.0", {"tags": [""]}, ErrorKind.INVALID),
        (SERVER, "2.0.0", {"tags": ["x"] * 101}, ErrorKind.INVALID),
    ],
)
async def test_invalid_rollouts_are_refused(
    cloud: MemoryCloud, program: str, name: str, changes: dict[str, Any], kind: ErrorKind
) -> None:
    person = await opened(cloud, "1.0.0", channels=["stable"])
    person.add("2.0.0", b"program 2.0.0")
    await publish(cloud, person)
    await refused(kind, service(cloud).start_rollout(person.owner, program, name, **changes))


async def test_a_rollout_stops_when_too_many_machines_rolled_back(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0")
    machines = await parts(cloud, 4)
    calls = service(cloud)
    await send(cloud, machines[3], report("1.0.0", "rolled_back"))  # before the rollout: not counted
    await calls.start_rollout(person.owner, SERVER, "1.0.0", stop_after=1)

    async def state() -> tuple[str, int]:
        info = (await calls.get_rollout(person.owner, SERVER, "1.0.0")).rollout
        return info.state, info.rolled_back

    assert await state() == ("active", 0)
    for ended in (1.0, 1.0, 2.0):  # a machine counts once
        await send(cloud, machines[0], report("1.0.0", "rolled_back", ended))
    await send(cloud, machines[1], report("1.0.0", "rejected"))
    await send(cloud, machines[1], report("9.0.0", "rolled_back"))
    assert await state() == ("active", 1)
    await send(cloud, machines[2], report("1.0.0", "rolled_back"))
    assert await state() == ("stopped", 2)
    status = await calls.get_rollout(person.owner, SERVER, "1.0.0")
    assert status.rollout.reason == "2 machines rolled back, more than 1"
    assert {(item.machine, item.state) for item in status.machines} == {
        ("m0", "rolled_back"), ("m1", "rejected"), ("m2", "rolled_back"), ("m3", "rolled_back"),
    }  # fmt: skip
    clock.now += timedelta(minutes=1)
    await calls.set_rollout_state(person.owner, SERVER, "1.0.0", "active")
    assert await state() == ("active", 0)


async def test_reports_are_stored_and_bounded(cloud: MemoryCloud, machine: str, part: str) -> None:
    agent, owner = AgentService(cloud.cloud, Author(PART, part)), cloud.first.id
    await send(cloud, part, report("1.0.0", "updated", target="2.0.0", step="wait", step_since=5.0))
    people = AgentService(cloud.cloud, Author(KEY, owner))
    state = await people.get_agent_state(part)
    assert json.loads(state.report_json)["server"]["step"] == "wait"
    assert [(item.version, item.result, item.reason) for item in state.outcomes] == [
        ("1.0.0", "updated", "it did not serve")
    ]
    for text in (
        "",
        "[]",
        "{}",
        "x" * 10,
        '{"format": 1, "time": "x"}',
        "[" * 5000,
        '{"format": 1, "time": 1, "server": {"history": [1]}}',
    ):
        await refused(ErrorKind.INVALID, agent.report_agent(part, text.encode()))
    await refused(
        ErrorKind.INVALID, agent.report_agent(part, json.dumps({"format": 1, "time": 1, "x": "y" * 65536}).encode())
    )
    outcome = json.loads(report("1.0.0", "updated"))["server"]["history"][0]
    for start in range(0, 300, 50):
        history = [{**outcome, "ended": float(number + 1)} for number in range(start, start + 50)]
        await send(cloud, part, json.dumps({"format": 1, "time": 1.0, "server": {"history": history}}))
    strange = [{**outcome, "ended": ended} for ended in (-1.0, 0.0, 1e30)]
    await send(cloud, part, json.dumps({"format": 1, "time": 1.0, "server": {"history": strange}}))
    kept = (await people.get_agent_state(part)).outcomes
    assert len(kept) == reports.OUTCOMES
    assert max(item.ended.timestamp() for item in kept) == 300
    await cloud.app("delete_robot", id=machine)
    for table in ("agent_reports", "agent_programs", "agent_outcomes"):
        assert await cloud.cloud.store.read(lambda sql, table=table: sql.rows(f"SELECT * FROM {table}")) == []


async def test_a_machine_reports_only_about_itself(cloud: MemoryCloud, part: str) -> None:
    (other,) = await parts(cloud, 1)
    agent = AgentService(cloud.cloud, Author(PART, other))
    await refused(ErrorKind.NOT_FOUND, agent.report_agent(part, report("1.0.0", "updated").encode()))
    assert PLATFORM == "linux/x86_64"
