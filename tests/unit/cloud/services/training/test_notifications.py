"""Messages about the ends of training jobs: who gets them, what they contain, and who may choose it."""

from __future__ import annotations

import email
import json
from typing import Any

import pytest

from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.training import jobs, queue
from cloud.domain.triggering import queue as events
from cloud.domain.triggering import training_messages
from cloud.domain.triggering.evaluation import evaluate_many
from cloud.store.sql import Sql
from rpc.api.cloud_v1 import TRAINING as OWN
from schema.errors import ErrorKind
from tests.unit.cloud.services.training.test_training_calls import refused
from tests.unit.cloud.services.training.world import TRAINING, Tenant, able, tenant
from tests.unit.cloud.triggering_help import Receiver, log, rows, sent
from training.jobs.lifecycle import JobHappening
from triggers.retry import AttemptOutcome

URL = "https://receiver.test/secret-path"
SECRET = "whsec_" + "A" * 32


@pytest.fixture
async def us(cloud: Any) -> Tenant:
    owner = await tenant(able(cloud))
    await owner.add("ok")
    await owner.add("bad")
    return owner


async def notify(us: Tenant, type: str, value: str, **more: str) -> None:  # noqa: A002 - field of the call
    await us.call(OWN, "add_notification", organization_id=us.organization, type=type, value=value, **more)


async def listed(us: Tenant) -> list[dict[str, Any]]:
    reply: list[dict[str, Any]] = await us.call(OWN, "list_notifications", organization_id=us.organization)
    return reply


async def write(us: Tenant, work: Any) -> Any:
    return await us.cloud.cloud.store.write(work)


async def end(us: Tenant, subject: str, happening: JobHappening, **more: str) -> None:
    """Run a job until its end."""
    now = us.cloud.cloud.clock()

    def work(sql: Sql) -> None:
        started = queue.take(sql, "worker", now)
        assert started is not None
        assert started.id == subject
        queue.end(sql, subject, "worker", happening, now, **more)

    await write(us, work)


async def messages(us: Tenant) -> list[Any]:
    """Evaluate what waits; return the deliveries for the organization."""
    while await write(us, lambda sql: evaluate_many(sql, us.cloud.cloud.links.page)):
        pass
    return await log(us.cloud, us.organization)


async def test_a_webhook_and_an_email_about_a_completed_job(us: Tenant) -> None:
    await notify(us, "webhook", URL, secret=SECRET)
    await notify(us, "email", "ann@example.com")
    subject = await us.submit()
    await end(us, subject, JobHappening.COMPLETE, model=f"{us.organization}/parts")
    hook, mail = await messages(us)
    assert (hook.method, hook.target) == ("POST", URL)
    assert dict(hook.headers)["Trigger-Type"] == "training_job_ended"
    body = json.loads(hook.body)
    assert {key: body[key] for key in ("job_id", "state", "error", "model_name", "model_version", "package")} == {
        "job_id": subject,
        "state": "completed",
        "error": "",
        "model_name": "parts",
        "model_version": "1",
        "package": f"{us.organization}/parts",
    }
    assert (body["dataset_id"], body["organization_id"]) == (us.dataset, us.organization)
    assert body["url"].endswith(f"/training/{subject}")
    assert body["created"] <= body["started"] <= body["ended"]
    assert SECRET not in hook.body.decode()
    text = email.message_from_bytes(mail.body)
    assert (text["To"], text["Subject"]) == ("ann@example.com", "parts 1: training completed")


async def test_every_kind_of_end_is_reported_once(us: Tenant) -> None:
    await notify(us, "webhook", URL)
    failed = await us.submit()
    await end(us, failed, JobHappening.FAIL, reason="out of memory")
    waiting = await us.submit(model_version="2")
    await us.call(TRAINING, "cancel_training_job", id=waiting)
    lost = await us.submit(model_version="3")
    now = us.cloud.cloud.clock()
    for attempt in range(queue.ATTEMPTS):
        await write(us, lambda sql, attempt=attempt: queue.take(sql, f"worker {attempt}", now))
        await write(us, lambda sql, attempt=attempt: queue.recover(sql, now, {f"worker {attempt}"}))
    ends = [json.loads(delivery.body) for delivery in await messages(us)]
    assert [(body["job_id"], body["state"]) for body in ends] == [
        (failed, "failed"),
        (waiting, "canceled"),
        (lost, "failed"),
    ]
    assert ends[0]["error"] == "out of memory"
    assert "3 times" in ends[2]["error"]
    assert ends[1]["started"] is None


async def test_another_organization_is_not_notified(us: Tenant) -> None:
    other = await tenant(us.cloud, "other")
    await notify(other, "webhook", URL)
    subject = await us.submit()
    await end(us, subject, JobHappening.FAIL, reason="x")
    assert await messages(us) == []
    assert await log(us.cloud, other.organization) == []
    assert await rows(us.cloud, "SELECT * FROM trigger_events") == []


async def test_operators_neither_see_nor_change_notifications(us: Tenant) -> None:
    await notify(us, "webhook", URL)
    grant = Grant("operator", "organization", us.organization)
    clock = us.cloud.cloud.clock
    operator, _ = await write(us, lambda sql: create_key(sql, us.organization, "op", [grant], clock()))
    client = us.cloud.client(operator)
    fields = {"organization_id": us.organization, "type": "webhook", "value": URL}
    for method, arguments in (
        ("list_notifications", {"organization_id": us.organization}),
        ("add_notification", fields),
        ("remove_notification", fields),
    ):
        await refused(ErrorKind.PERMISSION, client.call(OWN, "", method, **arguments))
    assert [entry["value"] for entry in await listed(us)] == [URL]


@pytest.mark.parametrize(
    ("type", "value", "secret", "part"),
    [
        ("push", "phone", "", "'push' is not a type of notification"),
        ("email", "ann", "", "'ann' is not an email address: write an address such as ann@example.com"),
        ("email", "all_machine_owners", "", "is for triggers of machines"),
        ("webhook", "ftp://receiver.test", "", "http"),
        ("webhook", URL, "abc", "does not begin with whsec_"),
        ("email", "ann@example.com", SECRET, "applies only to webhooks"),
    ],
)
async def test_invalid_targets_are_refused(us: Tenant, type: str, value: str, secret: str, part: str) -> None:  # noqa: A002 - field of the call
    error = await refused(ErrorKind.INVALID, notify(us, type, value, secret=secret))
    assert part in error
    assert SECRET not in error
    assert await listed(us) == []


async def test_the_number_is_limited(us: Tenant) -> None:
    for number in range(20):
        await notify(us, "email", f"a{number}@example.com")
    await notify(us, "email", "a3@example.com")  # exists
    await refused(ErrorKind.EXHAUSTED, notify(us, "email", "b@example.com"))
    assert len(await listed(us)) == 20


async def test_a_removed_target_gets_nothing_that_waits(us: Tenant) -> None:
    await notify(us, "webhook", URL)
    subject = await us.submit()
    await end(us, subject, JobHappening.FAIL, reason="x")
    assert len(await messages(us)) == 1
    await us.call(OWN, "remove_notification", organization_id=us.organization, type="webhook", value=URL)
    receiver = Receiver()
    await sent(us.cloud, receiver)
    assert receiver.got == []
    (delivery,) = await log(us.cloud, us.organization)
    assert delivery.state.value == "failed"
    missing = us.call(OWN, "remove_notification", organization_id=us.organization, type="webhook", value=URL)
    await refused(ErrorKind.NOT_FOUND, missing)


async def test_the_list_shows_whether_the_last_message_arrived(us: Tenant) -> None:
    await notify(us, "webhook", URL, secret=SECRET)
    (entry,) = await listed(us)
    assert (entry["state"], entry["error"], entry["signed"], entry.get("tried")) == ("", "", True, None)
    subject = await us.submit()
    await end(us, subject, JobHappening.FAIL, reason="x")
    await messages(us)
    await sent(us.cloud, Receiver(AttemptOutcome(error="nobody there", final=True)))
    (entry,) = await listed(us)
    assert (entry["state"], entry["error"]) == ("failed", "nobody there")
    assert entry["tried"] is not None


async def test_the_audit_log_has_neither_secret_nor_path(us: Tenant) -> None:
    await notify(us, "webhook", URL, secret=SECRET)
    (entry,) = await rows(us.cloud, "SELECT detail FROM audit WHERE action = 'add_notification'")
    assert SECRET not in entry["detail"]
    assert "secret-path" not in entry["detail"]
    assert "https://receiver.test" in entry["detail"]


async def test_housekeeping_keeps_what_waits(us: Tenant) -> None:
    await notify(us, "webhook", URL)
    subject = await us.submit()
    await end(us, subject, JobHappening.FAIL, reason="x")
    await write(us, lambda sql: events.forget(sql, us.cloud.cloud.clock()))
    assert len(await messages(us)) == 1


async def test_a_deleted_job_is_reported_nevertheless(us: Tenant) -> None:
    await notify(us, "webhook", URL)
    subject = await us.submit()
    await end(us, subject, JobHappening.FAIL, reason="x")
    await write(us, lambda sql: jobs.delete(sql, subject))
    assert len(await messages(us)) == 1


async def test_a_message_that_cannot_be_made_blocks_no_other(us: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    await notify(us, "webhook", URL)
    with monkeypatch.context() as patch:
        patch.setattr(training_messages, "about_training", lambda *_: 1 / 0)
        await end(us, await us.submit(), JobHappening.FAIL, reason="x")
        assert await messages(us) == []
    await end(us, await us.submit(), JobHappening.FAIL, reason="y")
    assert [json.loads(delivery.body)["error"] for delivery in await messages(us)] == ["y"]


async def test_a_secret_in_the_reason_of_a_failure_is_masked(us: Tenant) -> None:
    await notify(us, "webhook", URL)
    await notify(us, "email", "ann@example.com")
    await end(us, await us.submit(), JobHappening.FAIL, reason="cannot log in with api_key=s3cret")
    hook, mail = await messages(us)
    assert json.loads(hook.body)["error"].startswith("cannot log in with api_key=")
    assert not any(b"s3cret" in each.body for each in (hook, mail))
