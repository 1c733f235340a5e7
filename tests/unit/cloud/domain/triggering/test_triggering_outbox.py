"""The outbox: leases, order, retries, the delivery log and entries in the machine's log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import trio

from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogQuery, LogRecord
from cloud.domain.triggering import deliveries
from cloud.domain.triggering.deliveries import RETENTION, DeliveryState
from cloud.domain.triggering.outbox import CONCURRENT, LEASE, LIMITS, Outbox
from cloud.domain.triggering.senders import message_of, senders
from cloud.domain.triggering.ways import NOTHING_SET, DeliverySettings, ways
from cloud.server.memory import MemoryCloud
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.triggering_help import (
    URL,
    Receiver,
    configure,
    email,
    evaluated,
    log,
    sending,
    sent,
    tabular,
    upload,
    webhook,
)
from triggers.retry import SCHEDULE, AttemptOutcome, of_status
from triggers.smtp import SmtpSettings


async def made(cloud: MemoryCloud, part: str, count: int = 1, *targets: dict[str, Any]) -> list[str]:
    """Create waiting deliveries and return their ids."""
    await configure(cloud, part, tabular("all", *targets))
    for number in range(count):
        await upload(cloud, part, number)
    return [item.id for item in await evaluated(cloud, part)]


async def said(cloud: MemoryCloud, part: str) -> list[LogRecord]:
    return await cloud.cloud.store.read(lambda sql: logs.query(sql, part, LogQuery(ascending=True)))


async def attempts(cloud: MemoryCloud, subject: str) -> list[deliveries.Attempt]:
    return await cloud.cloud.store.read(lambda sql: deliveries.attempts(sql, subject))


async def test_a_delivery_is_sent_and_recorded(cloud: MemoryCloud, part: str) -> None:
    (item,) = await made(cloud, part)
    receiver = Receiver()
    await sent(cloud, receiver)
    await sent(cloud, receiver)
    assert [name for name, _ in receiver.got] == [item]
    assert [(each.state, each.attempts) for each in await log(cloud, part)] == [(DeliveryState.DELIVERED, 1)]
    assert [(each.number, each.status, each.error) for each in await attempts(cloud, item)] == [(1, 200, "")]
    assert await said(cloud, part) == []


async def test_failed_deliveries_are_retried_on_schedule_and_then_abandoned(
    cloud: MemoryCloud, part: str, clock: Any
) -> None:
    (item,) = await made(cloud, part)
    receiver = Receiver(*[of_status(500)] * 20)
    for wait in SCHEDULE:
        await sent(cloud, receiver)
        count = len(receiver.got)
        clock.now += timedelta(seconds=wait - 1)
        await sent(cloud, receiver)
        assert len(receiver.got) == count  # not due yet
        clock.now += timedelta(seconds=wait * 0.2 + 1)
    await sent(cloud, receiver)
    assert {name for name, _ in receiver.got} == {item}  # all attempts have the same id
    assert len(receiver.got) == len(SCHEDULE) + 1
    clock.now += timedelta(days=2)
    await sent(cloud, receiver)
    assert len(receiver.got) == len(SCHEDULE) + 1
    (kept,) = await log(cloud, part)
    assert (kept.state, kept.attempts) == (DeliveryState.FAILED, len(SCHEDULE) + 1)
    assert [each.status for each in await attempts(cloud, item)] == [500] * 8
    first, last = await said(cloud, part)  # the first failure and the last one
    assert (first.level, first.logger) == ("error", "app.trigger.all")
    assert "retried at" in first.message
    assert "not retried after 8 attempts" in last.message
    fields = {each["Key"]: each["Value"] for each in first.fields}
    assert fields == {
        "target": "https://receiver.test",  # without the path, which may be a secret
        "part_id": part,
        "component": "oven",
        "method": "Readings",
        "trigger_type": "part_data_ingested",
        "notification_type": "webhook",
        "error": first.message.split(": ", 1)[1].split("; ")[0],
        "status_code": 500,
        "delivery": item,
        "attempt": 1,
    }


async def test_a_target_that_stays_down_is_logged_once(cloud: MemoryCloud, part: str, clock: Any) -> None:
    names = await made(cloud, part, 3)
    down = Receiver(*[of_status(500)] * 3)
    for _ in names:
        await sent(cloud, down)
    assert len(down.got) == 3
    assert [line.level for line in await said(cloud, part)] == ["error"]
    clock.now += timedelta(seconds=SCHEDULE[0] * 1.2)
    for _ in names:
        await sent(cloud, Receiver(of_status(404)))  # a different failure, which is final
    levels = [(line.level, "answered 404" in line.message) for line in await said(cloud, part)]
    assert levels == [("error", False), ("error", True), ("info", True), ("info", True)]


@pytest.mark.parametrize("status", [301, 400, 401, 404, 410])
async def test_permanent_failures_are_not_retried(cloud: MemoryCloud, part: str, status: int) -> None:
    await made(cloud, part)
    await sent(cloud, Receiver(of_status(status)))
    (kept,) = await log(cloud, part)
    assert kept.state is DeliveryState.FAILED
    stops = await cloud.cloud.store.read(lambda sql: deliveries.stops(sql, part))
    assert [stop.target for stop in stops] == ([URL] if status == 410 else [])
    await upload(cloud, part, 5)
    assert len(await evaluated(cloud, part)) == (1 if status == 410 else 2)


async def test_a_retry_after_header_is_respected(cloud: MemoryCloud, part: str, clock: Any) -> None:
    await made(cloud, part)
    receiver = Receiver(of_status(429, 600.0))
    await sent(cloud, receiver)
    clock.now += timedelta(seconds=599)
    await sent(cloud, receiver)
    assert len(receiver.got) == 1
    clock.now += timedelta(seconds=2)
    await sent(cloud, receiver)
    assert len(receiver.got) == 2


async def test_first_attempts_are_in_order_and_may_overtake_retries(cloud: MemoryCloud, part: str, clock: Any) -> None:
    names = await made(cloud, part, 3)
    receiver = Receiver(of_status(503))
    for _ in range(5):
        await sent(cloud, receiver)
    assert [name for name, _ in receiver.got] == names  # in order; the failed delivery does not block the others
    clock.now += timedelta(seconds=SCHEDULE[0] * 1.2)
    await sent(cloud, receiver)
    assert [name for name, _ in receiver.got] == [*names, names[0]]


async def test_a_target_gets_one_message_at_a_time_and_does_not_delay_others(cloud: MemoryCloud, part: str) -> None:
    await made(cloud, part, 4, webhook("https://slow.test/"), webhook("https://fast.test/"))
    slow = trio.Event()
    inside: list[str] = []
    fast = trio.Event()

    async def hold(item: deliveries.Delivery) -> None:
        inside.append(item.target)
        if item.target == "https://slow.test/":
            await slow.wait()
        elif inside.count("https://fast.test/") == 4:
            fast.set()

    receiver = Receiver()
    receiver.before = hold
    async with sending(cloud, receiver):
        with trio.fail_after(30):
            await fast.wait()
        assert inside.count("https://slow.test/") == 1
        slow.set()


async def test_retries_for_a_dead_target_do_not_fill_a_batch(cloud: MemoryCloud, part: str, clock: Any) -> None:
    dead, well = "https://dead.test/", "https://well.test/"
    await configure(cloud, part, tabular("all", webhook(dead), webhook(well)))
    for _ in range(2 * CONCURRENT):
        await upload(cloud, part, 20)
    names = [item.id for item in await evaluated(cloud, part) if item.target == dead]
    statement = "UPDATE deliveries SET tries = 1, due = due - 1000000 WHERE target = ?"
    await cloud.cloud.store.write(lambda sql: sql.run(statement, dead))
    arrived = trio.Event()
    held: list[str] = []

    async def hold(first: deliveries.Delivery) -> None:
        if first.target == well:
            arrived.set()
        else:
            held.append(first.id)
            await trio.sleep_forever()

    receiver = Receiver()
    receiver.before = hold
    outbox = Outbox(cloud.cloud.store, cloud.cloud.events, clock, {"webhook": receiver})
    async with trio.open_nursery() as nursery:
        await outbox.round(nursery)
        with trio.fail_after(30):
            await arrived.wait()
        assert held == names[:1]
        nursery.cancel_scope.cancel()


async def test_a_hanging_mail_server_delays_no_webhook(cloud: MemoryCloud, part: str, clock: Any) -> None:
    owners = [email(f"owner{number}@example.com") for number in range(2 * CONCURRENT)]
    await configure(cloud, part, tabular("mails", *owners), tabular("hook"))
    await upload(cloud, part, 20)
    assert len(await evaluated(cloud, part)) == 2 * CONCURRENT + 1
    arrived = trio.Event()
    held: list[str] = []

    async def hold(item: deliveries.Delivery) -> None:
        if item.type == "webhook":
            arrived.set()
        else:
            held.append(item.target)
            await trio.sleep_forever()

    receiver = Receiver()
    receiver.before = hold
    outbox = Outbox(cloud.cloud.store, cloud.cloud.events, clock, {"webhook": receiver, "email": receiver})
    async with trio.open_nursery() as nursery:
        await outbox.round(nursery)
        with trio.fail_after(30):
            await arrived.wait()
        assert sorted(held) == ["owner0@example.com", "owner1@example.com"]
        nursery.cancel_scope.cancel()


async def test_a_message_of_a_killed_process_is_sent_by_another(cloud: MemoryCloud, part: str, clock: Any) -> None:
    names = await made(cloud, part, 2)
    store = cloud.cloud.store
    (taken,) = await store.write(lambda sql: deliveries.take(sql, clock(), LEASE, 10))
    assert taken.id == names[0]
    receiver = Receiver()
    await sent(cloud, receiver)
    assert receiver.got == []  # the lease is held, and later deliveries wait for it
    clock.now += LEASE
    await sent(cloud, receiver)
    await sent(cloud, receiver)
    assert [name for name, _ in receiver.got] == names


async def test_after_a_restart_messages_do_not_wait_for_the_lease_of_the_killed_process(
    cloud: MemoryCloud, part: str, clock: Any
) -> None:
    if await cloud.cloud.store.read(lambda sql: sql.skip_locked):
        pytest.skip("with replicas, the lease of a dead replica has to end first")
    (item,) = await made(cloud, part)
    await cloud.cloud.store.write(lambda sql: deliveries.take(sql, clock(), LEASE, 10))
    got = trio.Event()

    async def tell(_: object) -> None:
        got.set()

    receiver = Receiver()
    receiver.before = tell
    async with sending(cloud, receiver):
        with trio.fail_after(30):
            await got.wait()
    assert [name for name, _ in receiver.got] == [item]


async def test_a_process_that_lost_its_lease_records_nothing(cloud: MemoryCloud, part: str, clock: Any) -> None:
    (item,) = await made(cloud, part)
    store = cloud.cloud.store
    (slow,) = await store.write(lambda sql: deliveries.take(sql, clock(), LEASE, 10))
    clock.now += LEASE
    await sent(cloud, Receiver())
    late = deliveries.Attempt(clock(), timedelta(seconds=90), 0, "no answer")
    await store.write(lambda sql: deliveries.record(sql, slow, late, DeliveryState.WAITING, clock() + LEASE))
    assert [each.state for each in await log(cloud, part)] == [DeliveryState.DELIVERED]
    assert [(each.number, each.error) for each in await attempts(cloud, item)] == [(1, ""), (2, "no answer")]


async def test_a_replay_sends_the_same_content_with_the_same_id(cloud: MemoryCloud, part: str, clock: Any) -> None:
    (item,) = await made(cloud, part)
    store, receiver = cloud.cloud.store, Receiver(of_status(404))
    with pytest.raises(MachineError) as caught:
        await store.write(lambda sql: deliveries.replay(sql, part, item, clock()))
    assert caught.value.kind is ErrorKind.PRECONDITION
    await sent(cloud, receiver)
    for _ in range(2):
        await store.write(lambda sql: deliveries.replay(sql, part, item, clock()))
        await sent(cloud, receiver)
    assert [name for name, _ in receiver.got] == [item] * 3
    assert [each.status for each in await attempts(cloud, item)] == [404, 200, 200]
    with pytest.raises(MachineError) as caught:
        await store.write(lambda sql: deliveries.replay(sql, "another part", item, clock()))
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_waiting_retry_can_be_sent_immediately(cloud: MemoryCloud, part: str, clock: Any) -> None:
    (item,) = await made(cloud, part)
    store, receiver = cloud.cloud.store, Receiver(of_status(503), of_status(503))
    await sent(cloud, receiver)
    (waiting,) = await log(cloud, part)
    assert (waiting.state, waiting.tries) == (DeliveryState.WAITING, 1)
    await store.write(lambda sql: deliveries.replay(sql, part, item, clock()))
    await sent(cloud, receiver)
    (again,) = await log(cloud, part)
    assert (again.state, again.tries) == (DeliveryState.WAITING, 2)  # the replay does not add attempts
    await store.write(lambda sql: deliveries.replay(sql, part, item, clock()))
    (taken,) = await store.write(lambda sql: deliveries.take(sql, clock(), LEASE, 10))
    with pytest.raises(MachineError) as caught:
        await store.write(lambda sql: deliveries.replay(sql, part, item, clock()))
    assert (taken.id, caught.value.kind) == (item, ErrorKind.PRECONDITION)


async def test_messages_of_removed_triggers_are_not_sent(cloud: MemoryCloud, part: str) -> None:
    await made(cloud, part, 1, webhook("https://old.test/"))
    await configure(cloud, part, tabular("all", webhook("https://new.test/")))
    receiver = Receiver()
    await sent(cloud, receiver)
    assert receiver.got == []
    (kept,) = await log(cloud, part)
    assert kept.state is DeliveryState.FAILED
    assert "was removed" in (await attempts(cloud, kept.id))[0].error


async def test_an_exception_in_a_sender_is_a_failed_attempt(cloud: MemoryCloud, part: str) -> None:
    (item,) = await made(cloud, part)

    async def fail(_: object) -> None:
        raise KeyError("a mistake")

    receiver = Receiver()
    receiver.before = fail
    await sent(cloud, receiver)
    assert "KeyError" in (await attempts(cloud, item))[0].error
    assert [each.state for each in await log(cloud, part)] == [DeliveryState.WAITING]


async def test_emails_without_a_server_are_stored_with_the_reason(cloud: MemoryCloud, part: str) -> None:
    await made(cloud, part, 1, email("ann@example.com"), email("all_machine_owners"))
    async with senders(NOTHING_SET) as opened:
        both = await log(cloud, part)
        target = (None, None, cloud.cloud.clock())
        said = [(await opened["email"](item, *target)) for item in both]  # type: ignore[arg-type]
    assert "--smtp" in said[0].error
    assert "metadata" in said[1].error
    assert all(element.final for element in said)
    message = message_of(both[0], "Oven <alerts@example.com>")
    assert (message["From"], message["Message-ID"]) == ("Oven <alerts@example.com>", f"<{both[0].id}@example.com>")
    assert message["To"] == "ann@example.com"


async def test_push_messages_are_recorded_as_not_delivered(cloud: MemoryCloud, part: str) -> None:
    await made(cloud, part, 1, {"type": "push", "value": "phone", "application": "app"})
    await sent(cloud, Receiver())
    (kept,) = await log(cloud, part)
    assert kept.state is DeliveryState.FAILED
    assert "push" in (await attempts(cloud, kept.id))[0].error


async def test_the_log_is_kept_thirty_days(cloud: MemoryCloud, part: str, clock: Any) -> None:
    store = cloud.cloud.store
    names = await made(cloud, part, 2)
    await sent(cloud, Receiver(AttemptOutcome(200)))
    clock.now += RETENTION - timedelta(hours=1)
    assert await store.write(lambda sql: deliveries.expire(sql, clock())) == 0
    clock.now += timedelta(hours=2)
    assert await store.write(lambda sql: deliveries.expire(sql, clock())) == 1
    assert [entry.id for entry in await log(cloud, part)] == names[1:]  # waiting deliveries are kept
    assert await attempts(cloud, names[0]) == []
    assert timedelta(days=30) == RETENTION


def test_a_lease_outlasts_every_attempt() -> None:
    assert LEASE.total_seconds() > max(LIMITS.values())


def settings_of(**more: Any) -> DeliverySettings:
    words: dict[str, Any] = {"smtp": "", "sender": "", "security": "starttls", "ca_file": "", "environment": {}}
    return ways(**{**words, "allow": (), **more})


def test_settings_from_the_command_line() -> None:
    assert settings_of() == NOTHING_SET
    smtp = settings_of(
        smtp="mail.test:2525",
        sender="a@b.c",
        environment={"MACHINE_CLOUD_SMTP_USER": "u", "MACHINE_CLOUD_SMTP_PASSWORD": "p"},
    ).smtp
    assert smtp == SmtpSettings(host="mail.test", sender="a@b.c", port=2525, username="u", password="p")
    for text, address in (("mail.test", ("mail.test", 587)), ("[::1]:25", ("::1", 25)), ("[::1]", ("::1", 587))):
        result = settings_of(smtp=text, sender="a@b.c").smtp
        assert result is not None
        assert result.address == address
    assert settings_of(allow=["10.0.0.0/8", "hooks.internal"]).allow.hosts == {"hooks.internal"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"smtp": "mail.test"},
        {"sender": "a@b.c"},
        {"smtp": "mail.test:x", "sender": "a@b.c"},
        {"smtp": "::1:25", "sender": "a@b.c"},
        {"smtp": "mail.test:99999", "sender": "a@b.c"},
        {"smtp": "mail.test", "sender": "nobody"},
        {"smtp": "mail.test", "sender": "a@b.c", "environment": {"MACHINE_CLOUD_SMTP_USER": "u"}},
        {"allow": ["10.0.0.1/8"]},
        {"allow": ["not a host"]},
    ],
)
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        settings_of(**wrong)


async def test_the_pause_applies_to_sent_messages(cloud: MemoryCloud, part: str, clock: Any) -> None:
    receiver, began = Receiver(), clock.now
    await configure(cloud, part, tabular("all", webhook(seconds_between_notifications=10)))
    for happens, sends in ((0.0, 1.5), (10.0, 10.4)):  # the first delivery is sent late, the second one at once
        clock.now = began + timedelta(seconds=happens)
        await upload(cloud, part, 1)
        await evaluated(cloud, part)
        clock.now = began + timedelta(seconds=sends)
        await sent(cloud, receiver)
    assert len(receiver.got) == 1
    clock.now = began + timedelta(seconds=11.6)
    await sent(cloud, receiver)
    (_, first), (_, second) = receiver.got
    assert second - first >= timedelta(seconds=10)
    assert [(entry.state, entry.attempts) for entry in await log(cloud, part)] == [(DeliveryState.DELIVERED, 1)] * 2
