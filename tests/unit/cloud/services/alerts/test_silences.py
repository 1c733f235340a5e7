"""Silences of all alerts of a rule or a machine: what they cover, their end, who may, and what others see."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.alerts.quieting import silences
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from cloud.values.limits import ALERT_SILENCES
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.services.alerts.alert_help import call, measured, new_rule, settle

HOUR = timedelta(hours=1)


async def _machine(cloud: MemoryCloud, name: str) -> tuple[str, str]:
    machine: str = await cloud.app("new_robot", name=name, location=cloud.first.location)
    (part,) = await cloud.app("get_robot_parts", robot_id=machine)
    return machine, part["id"]


async def _silence(cloud: MemoryCloud, key: str = "", /, **arguments: Any) -> None:
    await call(cloud, "silence_alerts", key, **{"organization_id": cloud.first.organization, **arguments})


async def _sent(cloud: MemoryCloud) -> int:
    """Return how many messages were made."""
    await settle(cloud)

    def count(sql: Sql) -> int:
        row = sql.row("SELECT COUNT(*) AS count FROM deliveries")
        assert row is not None
        return int(row["count"])

    return await cloud.cloud.store.read(count)


async def _read(cloud: MemoryCloud, part: str, celsius: float) -> None:
    await measured(cloud, part, cloud.cloud.clock(), celsius=celsius)
    await settle(cloud)


@BOTH
@pytest.mark.parametrize("of", ["rule", "machine"])
async def test_nothing_is_sent_before_the_end_of_a_silence(cloud: MemoryCloud, clock: Clock, of: str) -> None:
    rule, (machine, part) = await new_rule(cloud), await _machine(cloud, "freezer")
    chosen = {"rule_id": rule} if of == "rule" else {"machine_id": machine}
    await _silence(cloud, **chosen, until=clock() + HOUR)
    (shown,) = await call(cloud, "list_alert_silences", organization_id=cloud.first.organization)
    assert (shown["name"], shown["silenced_by"]) == ("freezer warm" if of == "rule" else "freezer", "owner")
    await _read(cloud, part, -3.0)
    (alert,) = await call(cloud, "list_alerts")
    assert (alert["state"], alert["silenced_until"] is not None, await _sent(cloud)) == ("firing", True, 0)
    clock.now += HOUR + timedelta(seconds=1)
    assert await _sent(cloud) == 1  # it still fires, and was not sent
    (alert,) = await call(cloud, "list_alerts")
    assert alert.get("silenced_until") is None
    assert await call(cloud, "list_alert_silences", organization_id=cloud.first.organization) == []


@BOTH
async def test_a_silence_that_is_ended_sends_what_fires(cloud: MemoryCloud, clock: Clock) -> None:
    rule, (_, warm), (_, cold) = await new_rule(cloud), await _machine(cloud, "warm"), await _machine(cloud, "cold")
    await _silence(cloud, rule_id=rule, until=clock() + HOUR)
    await _read(cloud, warm, -3.0)
    await _read(cloud, cold, -3.0)
    await _read(cloud, cold, -20.0)
    assert await _sent(cloud) == 0
    await _silence(cloud, rule_id=rule)
    assert await _sent(cloud) == 1  # of the machine that still fires


@BOTH
async def test_alerts_that_were_sent_before_are_neither_repeated_nor_resolved_by_message(
    cloud: MemoryCloud, clock: Clock
) -> None:
    await new_rule(cloud, repeat_seconds=600)
    machine, part = await _machine(cloud, "freezer")
    await _read(cloud, part, -3.0)
    assert await _sent(cloud) == 1
    await _silence(cloud, machine_id=machine, until=clock() + HOUR)
    clock.now += timedelta(minutes=30)
    assert await _sent(cloud) == 1
    await _read(cloud, part, -20.0)
    assert await _sent(cloud) == 1
    assert await call(cloud, "list_alerts") == []


@BOTH
async def test_other_rules_and_machines_are_not_silenced(cloud: MemoryCloud, clock: Clock) -> None:
    rule = await new_rule(cloud)
    other = await new_rule(cloud, name="other")
    (machine, part), (_, second) = await _machine(cloud, "freezer"), await _machine(cloud, "second")
    await _silence(cloud, rule_id=rule, until=clock() + HOUR)
    await _read(cloud, part, -3.0)
    assert await _sent(cloud) == 1
    await _silence(cloud, rule_id=rule)
    await _silence(cloud, rule_id=other, until=clock() + HOUR)
    await _silence(cloud, machine_id=machine, until=clock() + HOUR)
    before = await _sent(cloud)
    await _read(cloud, second, -3.0)
    assert await _sent(cloud) == before + 1


async def test_silences_need_an_operator_of_the_organization(cloud: MemoryCloud, clock: Clock) -> None:
    rule, (machine, _) = await new_rule(cloud), await _machine(cloud, "freezer")
    grant = {"resource_type": "location", "resource_id": cloud.first.location, "authorization_id": "location_owner"}
    local = await cloud.app("create_key", authorizations=[{**grant, "authorization_type": "role"}], name="local")
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    until = clock() + HOUR
    for key, arguments, kind in (
        (local["id"], {"rule_id": rule}, ErrorKind.NOT_FOUND),
        (other.id, {"rule_id": rule}, ErrorKind.NOT_FOUND),
        (other.id, {"organization_id": other.organization, "machine_id": machine}, ErrorKind.NOT_FOUND),
        (other.id, {"organization_id": other.organization, "rule_id": rule}, ErrorKind.NOT_FOUND),
        ("", {"rule_id": rule, "machine_id": machine}, ErrorKind.INVALID),
        ("", {}, ErrorKind.INVALID),
        ("", {"rule_id": rule, "until": until + timedelta(days=31)}, ErrorKind.INVALID),
    ):
        with pytest.raises(MachineError) as refused:
            await _silence(cloud, key, **{"until": until, **arguments})
        assert refused.value.kind is kind, arguments
    await _silence(cloud, rule_id=rule, until=until)
    assert await call(cloud, "list_alert_silences", other.id, organization_id=other.organization) == []


async def test_silences_have_a_limit(cloud: MemoryCloud, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silences, "ALERT_SILENCES", replace(ALERT_SILENCES, value=1))
    rule, (machine, _) = await new_rule(cloud), await _machine(cloud, "freezer")
    for minutes in (1, 2):
        await _silence(cloud, rule_id=rule, until=clock() + timedelta(minutes=minutes))
    with pytest.raises(MachineError, match="silences"):
        await _silence(cloud, machine_id=machine, until=clock() + HOUR)
    clock.now += HOUR  # the first has ended
    await _silence(cloud, machine_id=machine, until=clock() + HOUR)


async def test_the_silence_of_a_deleted_rule_leaves_its_place_to_another(
    cloud: MemoryCloud, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silences, "ALERT_SILENCES", replace(ALERT_SILENCES, value=1))
    rule, (machine, _) = await new_rule(cloud), await _machine(cloud, "freezer")
    await _silence(cloud, rule_id=rule, until=clock() + HOUR)
    await call(cloud, "delete_alert_rule", organization_id=cloud.first.organization, rule_id=rule)
    await _silence(cloud, machine_id=machine, until=clock() + HOUR)


async def test_the_page_silences_a_rule_or_a_machine(cloud: MemoryCloud) -> None:
    rule, (machine, part) = await new_rule(cloud), await _machine(cloud, "freezer")
    await _read(cloud, part, -3.0)
    (alert,) = await call(cloud, "list_alerts")
    person, owner = await signed_in(cloud), cloud.first.organization
    assert "All alerts of freezer warm" in (await person.get("/alerts")).text
    for of, name in (("rule", "freezer warm"), ("machine", "freezer")):
        form = {"action": "silence", "of": of, "for": "4", "organization": owner}
        assert (await post(person, f"/alerts/{alert['id']}", **form)).status == 303
        shown = (await person.get("/alerts")).text
        assert (shown.count("End the silence"), f"End the silence of {name}" in shown) == (2, True)
        ended = {"rule": rule} if of == "rule" else {"machine": machine}
        assert (await post(person, "/alerts/silences", organization=owner, **ended)).status == 303
        assert "End the silence of" not in (await person.get("/alerts")).text


@BOTH
@pytest.mark.parametrize("of", ["rule", "machine", "alert"])
async def test_a_message_that_waits_for_its_group_is_not_sent_in_a_silence(
    cloud: MemoryCloud, clock: Clock, of: str
) -> None:
    rule, (machine, part) = await new_rule(cloud, group_seconds=300), await _machine(cloud, "freezer")
    await _read(cloud, part, -3.0)
    (alert,) = await call(cloud, "list_alerts")
    if of == "alert":
        await call(cloud, "silence_alert", alert_id=alert["id"], until=clock() + HOUR)
    else:
        await _silence(cloud, **({"rule_id": rule} if of == "rule" else {"machine_id": machine}), until=clock() + HOUR)
    clock.now += timedelta(seconds=400)
    assert await _sent(cloud) == 0
    clock.now += HOUR
    await settle(cloud)
    clock.now += timedelta(seconds=400)
    assert await _sent(cloud) == 1
