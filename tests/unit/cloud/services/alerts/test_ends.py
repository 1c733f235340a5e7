"""Alerts that end because their rule or their machine changes. The lists are right at once, the history follows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.alerts import deadlines, states
from cloud.domain.alerts.observing import Observer
from cloud.domain.triggering.evaluation import evaluate_many
from cloud.server.memory import MemoryCloud
from cloud.services.fleet.runner import run_next
from cloud.store.sql import Sql
from rpc.api import FLEET
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.services.alerts.alert_help import call, measured, new_rule, settle


async def _machine(cloud: MemoryCloud, name: str, location: str = "") -> tuple[str, str]:
    machine: str = await cloud.app("new_robot", name=name, location=location or cloud.first.location)
    (part,) = await cloud.app("get_robot_parts", robot_id=machine)
    return machine, part["id"]


async def _warm(cloud: MemoryCloud, part: str) -> None:
    await measured(cloud, part, cloud.cloud.clock(), celsius=-3.0)


async def _open(cloud: MemoryCloud) -> list[Any]:
    return [alert["machine"] for alert in await call(cloud, "list_alerts")]


async def _events(cloud: MemoryCloud) -> list[tuple[str, str, str]]:
    events = (await call(cloud, "list_alert_events", limit=100))["events"]
    return sorted((event["machine"], event["kind"], event["detail"]) for event in events)


@BOTH
async def test_a_change_of_a_rule_ends_its_alerts_in_bounded_steps(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "BATCH", 2)
    rule = await new_rule(cloud)
    names = [f"m{number}" for number in range(5)]
    for name in names:
        await _warm(cloud, (await _machine(cloud, name))[1])
    await settle(cloud)
    assert sorted(await _open(cloud)) == names
    other = {"path": "celsius", "comparison": "gt", "threshold": 20}
    changed = {"name": "freezer warm", "kind": "reading", "condition": other}
    owner = cloud.first.organization
    await call(cloud, "set_alert_rule", organization_id=owner, rule_id=rule, rule=changed)
    assert await _open(cloud) == []
    assert [each["open"] for each in await call(cloud, "list_alert_rules", organization_id=owner)] == [0] * 7
    steps = 0
    page = cloud.cloud.links.page
    while count := await cloud.cloud.store.write(lambda sql: deadlines.come_due(sql, cloud.cloud.clock(), page)):
        assert count <= 2
        steps += 1
    assert steps == 3
    closed = [(name, "closed", "the rule was changed") for name in names]
    assert [event for event in await _events(cloud) if event[1] == "closed"] == closed


@BOTH
async def test_an_alert_that_has_ended_and_fires_again_before_that_is_recorded_is_a_new_one(
    cloud: MemoryCloud,
) -> None:
    rule, (_, part) = await new_rule(cloud), await _machine(cloud, "m")
    await _warm(cloud, part)
    await settle(cloud)
    (before,) = await call(cloud, "list_alerts")
    condition = {"path": "celsius", "comparison": "gt", "threshold": -20}
    changed = {"name": "freezer warm", "kind": "reading", "condition": condition}
    await call(cloud, "set_alert_rule", organization_id=cloud.first.organization, rule_id=rule, rule=changed)
    await _warm(cloud, part)
    page = cloud.cloud.links.page
    await cloud.cloud.store.write(lambda sql: evaluate_many(sql, page, Observer(cloud.cloud.clock)))
    (after,) = await call(cloud, "list_alerts")
    assert after["id"] != before["id"]
    await settle(cloud)
    assert [kind for _, kind, _ in await _events(cloud)] == ["closed", "fired", "fired"]


@BOTH
async def test_an_alert_of_a_deleted_rule_keeps_the_name_of_the_rule(cloud: MemoryCloud) -> None:
    rule, (_, part) = await new_rule(cloud), await _machine(cloud, "m")
    await _warm(cloud, part)
    await settle(cloud)
    await call(cloud, "delete_alert_rule", organization_id=cloud.first.organization, rule_id=rule)
    await settle(cloud)
    events = (await call(cloud, "list_alert_events"))["events"]
    assert [(event["rule"], event["detail"]) for event in events][:1] == [("freezer warm", "the rule was deleted")]
    assert await cloud.cloud.store.read(_states) == 0


def _states(sql: Sql) -> int:
    row = sql.row("SELECT COUNT(*) AS count FROM alerts")
    assert row is not None
    return int(row["count"])


@BOTH
@pytest.mark.parametrize("how", ["moved", "location moved", "retagged", "by a job", "metadata"])
async def test_an_alert_ends_when_its_machine_leaves_the_scope_of_its_rule(cloud: MemoryCloud, how: str) -> None:
    owner = cloud.first.organization
    outer = (await cloud.app("create_location", organization_id=owner, name="hall"))["id"]
    arguments = {"organization_id": owner, "name": "corner", "parent_location_id": outer}
    inner = (await cloud.app("create_location", **arguments))["id"]
    machine, part = await _machine(cloud, "m", inner)
    _, stays = await _machine(cloud, "stays")
    tags = how in ("retagged", "by a job", "metadata")
    for each in (machine, (await cloud.app("get_robot_part", id=stays))["part"]["robot"]):
        await cloud.client().call(FLEET, "", "add_machine_tags", machine_id=each, tags=["cold"])
    await new_rule(cloud, scope={"tags": ["cold"]} if tags else {"locations": [outer, cloud.first.location]})
    for each in (part, stays):
        await _warm(cloud, each)
    await settle(cloud)
    assert sorted(await _open(cloud)) == ["m", "stays"]
    elsewhere = (await cloud.app("create_location", organization_id=owner, name="elsewhere"))["id"]
    if how == "moved":
        await cloud.app("update_robot", id=machine, name="m", location=elsewhere)
    elif how == "location moved":
        await cloud.app("update_location", location_id=inner, parent_location_id="")
    elif how == "retagged":
        await cloud.client().call(FLEET, "", "remove_machine_tags", machine_id=machine, tags=["cold"])
    elif how == "metadata":
        await cloud.app("update_robot_metadata", id=machine, data={})
    else:
        work = {"kind": "remove_tags", "tags": ["cold"]}
        await cloud.client().call(FLEET, "", "start_fleet_job", machine_ids=[machine], work=work)
        while await run_next(cloud.cloud, pace=0):
            pass
    await settle(cloud)
    assert await _open(cloud) == ["stays"]
    assert ("m", "closed", deadlines.LEFT) in await _events(cloud)


@BOTH
async def test_an_alert_that_cannot_be_changed_waits_for_an_hour(
    cloud: MemoryCloud, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await new_rule(cloud, repeat_seconds=600)
    await _warm(cloud, (await _machine(cloud, "m"))[1])
    await settle(cloud)
    clock.now += timedelta(minutes=11)

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(states, "step", broken)
        await settle(cloud)
    due = await cloud.cloud.store.read(states.next_due)
    assert due is not None
    assert due - clock() > deadlines.BROKEN - timedelta(minutes=1)
