"""machine.cloud.v1.AlertService: alerts of machines that the caller may see, rules of the organization, previews."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.triggering import deliveries, queue
from cloud.domain.triggering.presence import came_online, went_offline
from cloud.domain.triggering.queue import enqueue
from cloud.server.memory import MemoryCloud
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.services.alerts.alert_help import RULE, call, measured, new_rule, settle, warm
from tests.unit.cloud.triggering_help import Receiver, sending
from tests.unit.cloud.web.test_web_fleet import key_at
from triggers.events import TrainingEnded


async def operator_of(cloud: MemoryCloud, kind: str, subject: str) -> str:
    grant = Grant("operator", kind, subject)
    identity, _ = await cloud.cloud.store.write(
        lambda sql: create_key(sql, cloud.first.organization, "ann", [grant], cloud.cloud.clock())
    )
    return str(identity)


async def kind_of_refusal(cloud: MemoryCloud, method: str, key: str, /, **arguments: Any) -> ErrorKind:
    with pytest.raises(MachineError) as caught:
        await call(cloud, method, key, **arguments)
    return caught.value.kind


async def test_a_warm_freezer_is_listed_acknowledged_and_resolved(cloud: MemoryCloud, part: str) -> None:
    await new_rule(cloud)
    await warm(cloud, part)
    (alert,) = await call(cloud, "list_alerts")
    assert (alert["rule"], alert["machine"], alert["state"], alert["value"]) == ("freezer warm", "rover", "firing", -3)
    operator = await operator_of(cloud, "organization", cloud.first.organization)
    await call(cloud, "acknowledge_alert", operator, alert_id=alert["id"])
    (alert,) = await call(cloud, "list_alerts")
    assert (alert["state"], alert["acknowledged_by"]) == ("acknowledged", "ann")
    await warm(cloud, part, -20.0)
    assert await call(cloud, "list_alerts") == []
    events = (await call(cloud, "list_alert_events"))["events"]
    assert [event["kind"] for event in events] == ["resolved", "acknowledged", "fired"]
    assert (await call(cloud, "get_alert", alert_id=alert["id"]))["state"] == "resolved"
    with pytest.raises(MachineError, match="only one that fires"):
        await call(cloud, "acknowledge_alert", alert_id=alert["id"])


async def test_offline_machines_alert_without_any_setup(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    await cloud.cloud.store.write(lambda sql: came_online(sql, [part], clock()))
    await settle(cloud)
    clock.now += timedelta(hours=1)
    await cloud.cloud.store.write(lambda sql: went_offline(sql, [part], clock()))
    await settle(cloud)
    assert await call(cloud, "list_alerts") == []
    clock.now += timedelta(minutes=6)
    await settle(cloud)
    assert [alert["rule_id"] for alert in await call(cloud, "list_alerts")] == ["machine-offline"]
    await cloud.cloud.store.write(lambda sql: came_online(sql, [part], clock()))
    await settle(cloud)
    assert await call(cloud, "list_alerts") == []


async def test_a_disk_that_is_nearly_full_alerts(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    await measured(cloud, part, clock(), disk_used_pct=93.5, temperature_cpu_c=40.0)
    await settle(cloud)
    clock.now += timedelta(minutes=6)
    await settle(cloud)
    assert [alert["rule"] for alert in await call(cloud, "list_alerts")] == ["Disk nearly full"]


async def test_uploads_without_the_field_of_a_rule_are_not_queued(cloud: MemoryCloud, part: str) -> None:
    await measured(cloud, part, cloud.cloud.clock(), humidity=40.0)
    waiting = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT kind FROM trigger_events"))
    assert waiting == []


async def test_another_organization_sees_and_changes_nothing(cloud: MemoryCloud, part: str) -> None:
    rule = await new_rule(cloud)
    await warm(cloud, part)
    (alert,) = await call(cloud, "list_alerts")
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    assert await call(cloud, "list_alerts", other.id) == []
    assert (await call(cloud, "list_alert_events", other.id))["events"] == []
    assert (await call(cloud, "list_alert_events", other.id, alert_id=alert["id"]))["events"] == []
    owner = cloud.first.organization
    for method, arguments in (
        ("get_alert", {"alert_id": alert["id"]}),
        ("acknowledge_alert", {"alert_id": alert["id"]}),
        ("silence_alert", {"alert_id": alert["id"]}),
        ("list_alert_rules", {"organization_id": owner}),
        ("explain_alert_rule", {"organization_id": owner, "rule": RULE}),
        ("set_alert_rule", {"organization_id": other.organization, "rule": RULE, "rule_id": rule}),
    ):
        assert await kind_of_refusal(cloud, method, other.id, **arguments) is ErrorKind.NOT_FOUND, method


async def test_operators_act_on_alerts_and_only_owners_change_rules(cloud: MemoryCloud, part: str) -> None:
    rule = await new_rule(cloud)
    operator, owner = await operator_of(cloud, "organization", cloud.first.organization), cloud.first.organization
    shown = await call(cloud, "list_alert_rules", operator, organization_id=owner)
    assert shown[-1]["rule"]["targets"] == [{"type": "webhook", "value": "https://receiver.test"}]
    for method, arguments in (
        ("set_alert_rule", {"rule": RULE}),
        ("delete_alert_rule", {"rule_id": rule}),
        ("list_alert_targets", {}),
        ("add_alert_target", {"type": "email", "value": "ann@example.com"}),
        ("send_alert_test", {"rule_id": rule}),
    ):
        refusal = await kind_of_refusal(cloud, method, operator, organization_id=owner, **arguments)
        assert refusal is ErrorKind.PERMISSION, method


async def test_an_operator_of_one_machine_sees_only_its_alerts(cloud: MemoryCloud, part: str, machine: str) -> None:
    await new_rule(cloud)
    other = await cloud.app("new_robot", name="other", location=cloud.first.location)
    other_part = (await cloud.app("get_robot_parts", robot_id=other))[0]["id"]
    for each in (part, other_part):
        await warm(cloud, each)
    operator = await operator_of(cloud, "robot", machine)
    assert [alert["machine"] for alert in await call(cloud, "list_alerts", operator)] == ["rover"]
    events = await call(cloud, "list_alert_events", operator, limit=1)
    assert [event["machine"] for event in events["events"]] == ["rover"]
    (hidden,) = [alert for alert in await call(cloud, "list_alerts") if alert["machine"] == "other"]
    assert await kind_of_refusal(cloud, "acknowledge_alert", operator, alert_id=hidden["id"]) is ErrorKind.NOT_FOUND


async def test_a_silence_ends_within_a_month(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    await new_rule(cloud)
    await warm(cloud, part)
    (alert,) = await call(cloud, "list_alerts")
    for wrong in (clock() - timedelta(minutes=1), clock() + timedelta(days=31)):
        with pytest.raises(MachineError, match="30 days"):
            await call(cloud, "silence_alert", alert_id=alert["id"], until=wrong)
    until = clock() + timedelta(hours=4)
    await call(cloud, "silence_alert", alert_id=alert["id"], until=until)
    assert (await call(cloud, "list_alerts"))[0]["silenced_until"] == until
    await call(cloud, "silence_alert", alert_id=alert["id"])
    assert "silenced_until" not in (await call(cloud, "list_alerts"))[0]


async def test_a_rule_keeps_its_secret_and_never_returns_it(cloud: MemoryCloud) -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    target = {"type": "webhook", "value": "https://receiver.test/hook"}
    owner = cloud.first.organization
    rule = await new_rule(cloud, targets=[{**target, "secret": secret}])
    shown = (await call(cloud, "list_alert_rules", organization_id=owner))[-1]["rule"]
    assert shown["targets"] == [target]
    await call(cloud, "set_alert_rule", organization_id=owner, rule_id=rule, rule={**shown, "name": "renamed"})
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT document FROM alert_rules"))
    assert json.loads(rows[0]["document"])["targets"] == [{**target, "secret": secret}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "cannot be called"),
        ({"kind": "moon"}, "not valid"),
        ({"for_seconds": -1}, "for_seconds: -1 is out of range"),
        ({"for_seconds": 10**9}, "out of range"),
        ({"condition": None}, "condition"),
        ({"condition": {**RULE["condition"], "threshold": "warm"}}, "condition.threshold"),
        ({"condition": {**RULE["condition"], "recovery": 0.0}}, "on the side that alerts"),
        ({"condition": {**RULE["condition"], "path": "a..b"}}, "condition.path"),
        ({"message": "{secret}"}, "there is no placeholder {secret}"),
        ({"quiet": {"zone": "Mars", "start": "22:00", "end": "07:00"}}, "quiet.zone"),
        ({"quiet": {"zone": "UTC", "start": "25:00", "end": "07:00"}}, "quiet.start"),
        ({"quiet": {"zone": "UTC", "start": "22:00", "end": "07:00", "days": ["funday"]}}, "quiet.days"),
        ({"targets": [{"type": "webhook", "value": "ftp://x"}]}, "value"),
        ({"targets": [{"type": "email", "value": "ann"}]}, "not an email address"),
        ({"scope": {"machines": ["x"] * 201}}, "alert_scope"),
        ({"wrong": 1}, "wrong"),
    ],
)
async def test_a_mistake_in_a_rule_is_named(cloud: MemoryCloud, change: dict[str, Any], words: str) -> None:
    with pytest.raises(MachineError) as caught:
        await new_rule(cloud, **change)
    assert caught.value.kind is ErrorKind.INVALID
    assert words in str(caught.value)


async def test_two_rules_cannot_have_the_same_name(cloud: MemoryCloud) -> None:
    await new_rule(cloud)
    with pytest.raises(MachineError, match="already a rule"):
        await new_rule(cloud)


async def test_a_built_in_rule_is_changed_and_restored(cloud: MemoryCloud) -> None:
    owner = cloud.first.organization
    first = (await call(cloud, "list_alert_rules", organization_id=owner))[0]
    changed = {**first["rule"], "enabled": False}
    await call(cloud, "set_alert_rule", organization_id=owner, rule_id=first["id"], rule=changed)
    second = (await call(cloud, "list_alert_rules", organization_id=owner))[0]
    assert (second["id"], second["changed"], second["rule"]["enabled"]) == (first["id"], True, False)
    await call(cloud, "delete_alert_rule", organization_id=owner, rule_id=first["id"])
    assert (await call(cloud, "list_alert_rules", organization_id=owner))[0] == first


async def test_a_test_message_shows_the_answer(cloud: MemoryCloud) -> None:
    rule, owner = await new_rule(cloud), cloud.first.organization
    async with sending(cloud, Receiver()):
        sent = await call(cloud, "send_alert_test", organization_id=owner, rule_id=rule)
        answers = await call(cloud, "wait_for_alert_test", organization_id=owner, delivery_ids=sent)
    assert [(answer["state"], answer["status"]) for answer in answers] == [("answered", 200)]
    log = await cloud.cloud.store.read(lambda sql: deliveries.deliveries(sql, owner))
    assert json.loads(log[0].body)["test"] is True
    with pytest.raises(MachineError, match="no targets"):
        await call(cloud, "send_alert_test", organization_id=owner, rule_id="disk-full")


async def test_waiting_for_an_answer_ends_when_the_key_is_deleted(cloud: MemoryCloud) -> None:
    rule, owner = await new_rule(cloud), cloud.first.organization
    key, _ = await key_at(cloud, "organization", owner, "owner")
    sent = await call(cloud, "send_alert_test", organization_id=owner, rule_id=rule)  # nothing sends it
    ended: list[ErrorKind] = []

    async def wait() -> None:
        with pytest.raises(MachineError) as caught:
            await call(cloud, "wait_for_alert_test", key, organization_id=owner, delivery_ids=sent)
        ended.append(caught.value.kind)

    with trio.fail_after(15):  # less than the 20 seconds after which the call ends in any case
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked(0.1)
            await cloud.app("delete_key", id=key)
    assert ended[0] in {ErrorKind.UNAUTHENTICATED, ErrorKind.NOT_FOUND, ErrorKind.PERMISSION}


async def test_the_targets_of_the_organization_serve_rules_without_any(
    cloud: MemoryCloud, part: str, clock: Clock
) -> None:
    owner = cloud.first.organization
    await call(cloud, "add_alert_target", organization_id=owner, type="email", value="ann@example.com")
    await new_rule(cloud, targets=[])
    await warm(cloud, part)
    log = await cloud.cloud.store.read(lambda sql: deliveries.deliveries(sql, owner))
    assert [(delivery.type, delivery.value) for delivery in log] == [("email", "ann@example.com")]
    assert b"freezer warm" in log[0].body
    (target,) = await call(cloud, "list_alert_targets", organization_id=owner)
    assert target["state"] == "waiting"
    await call(cloud, "remove_alert_target", organization_id=owner, type="email", value="ann@example.com")
    assert await call(cloud, "list_alert_targets", organization_id=owner) == []


async def test_a_preview_counts_what_the_last_week_would_have_caused(
    cloud: MemoryCloud, part: str, clock: Clock
) -> None:
    owner = cloud.first.organization
    for hours, celsius in ((30, -20.0), (20, -3.0), (19, -20.0), (10, -2.0), (9, -20.0), (1, -20.0)):
        await measured(cloud, part, clock() - timedelta(hours=hours), celsius=celsius)
    reply = await call(cloud, "explain_alert_rule", organization_id=owner, rule={**RULE, "for_seconds": 600})
    assert (reply["count"], len(reply["sources"][0]["fired"]), reply["sources"][0]["open"]) == (2, 2, False)
    assert any("no readings before" in note for note in reply["notes"])
    calm = {**RULE, "condition": {**RULE["condition"], "threshold": 0.0}}
    assert (await call(cloud, "explain_alert_rule", organization_id=owner, rule=calm))["count"] == 0
    none = {**RULE, "condition": {**RULE["condition"], "path": "fahrenheit"}}
    reply = await call(cloud, "explain_alert_rule", organization_id=owner, rule=none)
    assert "no machine of the rule has readings with this field" in reply["notes"][-1]
    offline = {"name": "off", "kind": "offline"}
    reply = await call(cloud, "explain_alert_rule", organization_id=owner, rule=offline)
    assert "no history of this kind" in reply["notes"][0]


async def test_a_failed_training_job_alerts_owners_until_it_is_acknowledged(cloud: MemoryCloud) -> None:
    now, owner = cloud.cloud.clock(), cloud.first.organization
    ended = TrainingEnded("job", "failed", "no pictures", "cats", "1", "", "", "set", now, now, now)
    await cloud.cloud.store.write(lambda sql: enqueue(sql, owner, ended, now))
    await settle(cloud)
    (alert,) = await call(cloud, "list_alerts")
    assert (alert["source"], alert["value"]) == ("cats", "no pictures")
    assert await call(cloud, "list_alerts", await operator_of(cloud, "organization", owner)) == []
    await call(cloud, "acknowledge_alert", alert_id=alert["id"])
    assert await call(cloud, "list_alerts") == []


async def test_alerts_end_with_their_machine(cloud: MemoryCloud, machine: str, part: str) -> None:
    await new_rule(cloud)  # without reminders, so without a deadline
    await warm(cloud, part)
    assert len(await call(cloud, "list_alerts")) == 1
    await cloud.app("delete_robot", id=machine)
    await settle(cloud)
    assert await call(cloud, "list_alerts") == []
    (closed, *_) = (await call(cloud, "list_alert_events"))["events"]
    assert (closed["kind"], closed["detail"]) == ("closed", "the machine was deleted")


async def test_a_rule_that_changes_often_leaves_one_check_for_each_part(cloud: MemoryCloud, part: str) -> None:
    organization = cloud.first.organization
    for seconds in (10, 20, 30):
        rule = {"name": "Machine offline", "kind": "offline", "for_seconds": seconds}
        await call(cloud, "set_alert_rule", organization_id=organization, rule_id="machine-offline", rule=rule)
    assert await cloud.cloud.store.read(queue.waiting) == 1
