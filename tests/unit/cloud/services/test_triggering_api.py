"""Triggers: those in force, dry runs, tests and deliveries, each with its permissions."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.triggering.deliveries import stop
from cloud.server.memory import MemoryCloud
from cloud.services.triggers.triggers import TriggerService
from cloud.values.author import KEY, PART, Author
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.triggering_help import (
    URL,
    Receiver,
    configure,
    email,
    evaluated,
    hotter,
    log,
    sent,
    tabular,
    trigger,
    upload,
    webhook,
)
from triggers.retry import of_status

SECRET = "whsec_" + "A" * 32


def service(cloud: MemoryCloud, author: Author | None = None) -> TriggerService:
    return TriggerService(cloud.cloud, author or Author(KEY, cloud.first.id))


async def operator_key(cloud: MemoryCloud) -> Author:
    key = await cloud.app(
        "create_key",
        name="guard",
        authorizations=[
            {
                "authorization_type": "role",
                "authorization_id": "organization_operator",
                "resource_type": "organization",
                "resource_id": cloud.first.organization,
                "organization_id": cloud.first.organization,
                "identity_id": "",
                "identity_type": "api-key",
            }
        ],
    )
    return Author(KEY, key["id"])


async def test_effective_triggers_with_errors_pauses_and_stops(cloud: MemoryCloud, part: str, clock: Any) -> None:
    paused = webhook("https://b.test/", seconds_between_notifications=600, secret=SECRET)
    await configure(cloud, part, tabular("all", webhook(), paused), hotter("hot", 30), {"name": "broken"})
    await upload(cloud, part, 10)
    first = (await evaluated(cloud, part))[0]
    await cloud.cloud.store.write(lambda sql: stop(sql, first, "answered 410", clock()))
    triggers = await service(cloud).list_triggers(part)
    assert [item.name for item in triggers.triggers] == ["all", "hot"]
    assert any("triggers.2" in problem for problem in triggers.problems)
    left, two = triggers.triggers[0].targets
    assert (left.stopped, left.until, left.signed) == ("answered 410", None, False)
    assert two.signed
    assert two.until is not None
    assert clock() < two.until <= clock() + timedelta(seconds=600)
    assert triggers.triggers[1].condition["evals"] == [{"operator": "gt", "value": {"celsius": 30}}]
    assert SECRET not in repr(triggers)
    await service(cloud).start_trigger(part, "all")
    assert (await service(cloud).list_triggers(part)).triggers[0].targets[0].stopped == ""


async def test_a_dry_run_explains_and_changes_nothing(cloud: MemoryCloud, part: str) -> None:
    await configure(
        cloud, part, hotter("hot", 30, webhook(seconds_between_notifications=60)), trigger("on", "part_online")
    )
    api = service(cloud)
    yes = await api.explain_trigger(part, "hot", {"celsius": 31})
    no = await api.explain_trigger(part, "hot", {"readings": {"celsius": 29}})
    nothing = await api.explain_trigger(part, "hot")
    assert (yes.explanation.fires, no.explanation.fires, nothing.explanation.fires) == (True, False, False)
    assert [finding.reason for finding in no.explanation.findings] == ["29 is not greater than 30"]
    assert (await api.explain_trigger(part, "on")).explanation.fires
    assert await log(cloud, part) == []
    await upload(cloud, part, 50)
    assert len(await evaluated(cloud, part)) == 1  # a dry run starts no notification interval
    with pytest.raises(MachineError) as caught:
        await api.explain_trigger(part, "cold", {})
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_test_message_uses_the_outbox_and_is_not_retried(cloud: MemoryCloud, part: str, clock: Any) -> None:
    hot = hotter("hot", 30, webhook(seconds_between_notifications=60), webhook("https://b.test/"), email("a@b.c"))
    await configure(
        cloud, part, hot, trigger("on", "part_online"), trigger("l", "conditional_logs_ingested", log_levels=["warn"])
    )
    api = service(cloud)
    assert len(await api.send_test(part, "hot", reading={"celsius": 5})) == 3
    (only,) = await api.send_test(part, "hot", URL)
    with pytest.raises(MachineError):
        await api.send_test(part, "hot", "https://else.test/")
    for name in ("on", "l"):
        assert len(await api.send_test(part, name)) == 1
    receiver = Receiver(*[of_status(500)] * 10)
    for _ in range(4):
        await sent(cloud, receiver)
    clock.now += timedelta(hours=1)
    await sent(cloud, receiver)
    result = await log(cloud, part)
    assert [(item.test, item.state.value, item.attempts) for item in result] == [(True, "failed", 1)] * 6
    assert json.loads(result[0].body)["data"]["data"] == {"celsius": 5}
    record = await api.get_delivery(part, only)
    assert (record.delivery.id, [attempt.status for attempt in record.attempts]) == (only, [500])
    await upload(cloud, part, 50)
    assert len(await evaluated(cloud, part)) == 6 + 3  # a test starts no notification interval


async def test_the_log_in_pages(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("all"), hotter("hot", 2))
    for number in range(6):
        await upload(cloud, part, number)
    names = [item.id for item in await evaluated(cloud, part)][::-1]
    api = service(cloud)
    seen: list[str] = []
    before = None
    while page := await api.list_deliveries(part, before=before, limit=2):
        seen += [element.id for element in page]
        before = page[-1].number
    assert seen == names
    assert len(await api.list_deliveries(part, trigger="hot")) == 3
    assert len(await api.list_deliveries(part, state="waiting")) == 9
    assert await api.list_deliveries(part, state="failed") == []
    with pytest.raises(MachineError):
        await api.list_deliveries(part, state="lost")


CALLS: list[tuple[str, dict[str, Any], bool]] = [  # method, arguments, whether an operator may call it
    ("list_triggers", {}, True),
    ("list_deliveries", {}, True),
    ("get_delivery", {"delivery_id": "ID"}, True),
    ("explain_trigger", {"trigger": "all", "reading": {}}, True),
    ("send_test", {"trigger": "all"}, False),
    ("replay_delivery", {"delivery_id": "ID"}, False),
    ("start_trigger", {"trigger": "all"}, False),
]


@pytest.mark.parametrize(("method", "arguments", "operators"), CALLS)
async def test_roles(cloud: MemoryCloud, part: str, method: str, arguments: dict[str, Any], operators: bool) -> None:
    await configure(cloud, part, tabular("all"))
    await upload(cloud, part, 1)
    (item,) = await evaluated(cloud, part)
    await sent(cloud, Receiver(of_status(404)))
    values = {key: item.id if value == "ID" else value for key, value in arguments.items()}

    async def call(author: Author, where: str = part) -> ErrorKind | None:
        try:
            await getattr(service(cloud, author), method)(where, **values)
        except MachineError as error:
            return error.kind
        return None

    assert await call(await operator_key(cloud)) is (None if operators else ErrorKind.PERMISSION)
    assert await call(Author(KEY, "stranger")) is ErrorKind.NOT_FOUND
    assert await call(Author(PART, part)) is ErrorKind.PERMISSION  # a machine may not manage triggers
    assert await call(Author(KEY, cloud.first.id)) is None
    assert await call(Author(KEY, cloud.first.id), "no part") is ErrorKind.NOT_FOUND


async def test_a_delivery_of_another_part_is_not_found(cloud: MemoryCloud, machine: str, part: str) -> None:
    other = await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    await configure(cloud, part, tabular("all"))
    await upload(cloud, part, 1)
    (item,) = await evaluated(cloud, part)
    with pytest.raises(MachineError) as caught:
        await service(cloud).get_delivery(other, item.id)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_operators_see_only_the_host_of_a_webhook(cloud: MemoryCloud, part: str) -> None:
    secret = "https://receiver.test:8443/services/T000/SECRET?token=SECRET"
    await configure(cloud, part, tabular("all", webhook(secret), email("ann@example.com")))
    await upload(cloud, part, 1)
    await evaluated(cloud, part)
    owner, operator = service(cloud), service(cloud, await operator_key(cloud))
    for asks, expected in ((owner, secret), (operator, "https://receiver.test:8443")):
        both = [expected, "ann@example.com"]
        assert [each.value for each in (await asks.list_triggers(part)).triggers[0].targets] == both
        assert [each.value for each in (await asks.explain_trigger(part, "all")).targets] == both
        for delivery in await asks.list_deliveries(part):
            single = (await asks.get_delivery(part, delivery.id)).delivery
            assert single == delivery
            assert delivery.target in both
            assert asks is owner or "SECRET" not in repr(delivery)
