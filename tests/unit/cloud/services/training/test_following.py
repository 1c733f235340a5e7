"""machine.cloud.v1.TrainingService: events as they happen, without loss or repetition, and pages of jobs."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import trio

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key, delete_key
from cloud.domain.training import jobs
from cloud.server.memory import MemoryCloud
from cloud.services.agents.agent_requests import end_waiting
from cloud.services.training import following
from cloud.work.openings import STREAMS
from rpc.api.cloud_v1 import TRAINING as OWN
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.services.training.test_training_calls import refused
from tests.unit.cloud.services.training.world import TRAINING, Tenant, able, tenant
from training.jobs.events import JobEvent, Log, Metric, Progress

LIMIT = 20.0  # seconds; nothing here waits for a time


@pytest.fixture
async def us(cloud: MemoryCloud) -> Tenant:
    owner = await tenant(able(cloud))
    await owner.add("ok")
    await owner.add("bad")
    return owner


async def ask(us: Tenant, subject: str, after: int = 0, **more: int) -> dict[str, Any]:
    reply: dict[str, Any] = await us.call(OWN, "wait_for_events", id=subject, after=after, **more)
    return reply


async def happen(us: Tenant, subject: str, *events: JobEvent) -> None:
    cloud = us.cloud.cloud
    await cloud.store.write(lambda sql: jobs.append(sql, subject, events, cloud.clock()))


async def test_events_in_order_with_their_fields(us: Tenant) -> None:
    subject = await us.submit()
    await happen(us, subject, Log("hello", "warning"), Metric("loss", 0.5, 3), Progress(1, 4))
    reply = await ask(us, subject)
    status, log, metric, progress = reply["events"]
    assert (status["kind"], status["status"]) == ("status", "PENDING")
    assert (log["kind"], log["level"], log["message"]) == ("log", "warning", "hello")
    assert (metric["kind"], metric["name"], metric["value"], metric["step"]) == ("metric", "loss", 0.5, 3)
    assert (progress["kind"], progress["done"], progress["total"]) == ("progress", 1, 4)
    assert (reply["status"], reply["ended"]) == ("PENDING", False)


async def test_a_reader_continues_where_it_was(us: Tenant) -> None:
    subject = await us.submit()
    await happen(us, subject, *(Log(str(number)) for number in range(7)))
    seen: list[str] = []
    after = 0
    while page := (await ask(us, subject, after, limit=3))["events"]:
        assert len(page) <= 3
        seen += [event["message"] for event in page if event["kind"] == "log"]
        after = page[-1]["number"]
    assert seen == [str(number) for number in range(7)]


async def test_a_page_has_500_events_at_most(us: Tenant) -> None:
    subject = await us.submit()
    await happen(us, subject, *(Log(str(number)) for number in range(600)))
    assert len((await ask(us, subject))["events"]) == len((await ask(us, subject, limit=5000))["events"]) == 500


async def test_a_call_waits_for_the_next_event(us: Tenant) -> None:
    subject = await us.submit()
    last = (await ask(us, subject))["events"][-1]["number"]
    replies: list[dict[str, Any]] = []

    async def follow() -> None:
        replies.append(await ask(us, subject, last, wait=20))

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not replies
            await happen(us, subject, Log("news"))
    assert [event["message"] for event in replies[0]["events"]] == ["news"]


async def test_the_end_of_a_job(us: Tenant) -> None:
    subject = await us.submit()
    await us.call(TRAINING, "cancel_training_job", id=subject)
    first = await ask(us, subject, limit=1)
    assert not first["ended"]  # one more event follows
    with trio.fail_after(LIMIT):
        rest = await ask(us, subject, first["events"][-1]["number"], wait=20)
        assert (rest["status"], rest["ended"], len(rest["events"])) == ("CANCELED", True, 1)
        assert (await ask(us, subject, rest["events"][-1]["number"], wait=20))["ended"]


async def test_a_deleted_job_ends_the_wait(us: Tenant) -> None:
    subject = await us.submit()
    await us.call(TRAINING, "cancel_training_job", id=subject)
    last = (await ask(us, subject))["events"][-1]["number"]
    await us.call(TRAINING, "delete_completed_training_job", id=subject)
    await refused(ErrorKind.NOT_FOUND, ask(us, subject, last, wait=20))


async def test_the_events_of_an_old_job_are_gone_but_its_end_is_known(us: Tenant, clock: Clock) -> None:
    subject = await us.submit()
    await us.call(TRAINING, "cancel_training_job", id=subject)
    clock.now += jobs.LOGS + timedelta(days=1)
    await us.cloud.cloud.store.write(lambda sql: jobs.expire(sql, clock()))
    reply = await ask(us, subject, wait=20)
    assert (reply["events"], reply["status"], reply["ended"]) == ([], "CANCELED", True)


async def test_a_revoked_key_waits_no_longer(us: Tenant) -> None:
    subject = await us.submit()
    last = (await ask(us, subject))["events"][-1]["number"]
    cloud, caught = us.cloud.cloud, list[MachineError]()

    async def follow() -> None:
        try:
            await us.cloud.client(key).call(OWN, "", "wait_for_events", id=subject, after=last, wait=20)
        except MachineError as error:
            caught.append(error)

    grants = [Grant("owner", "organization", us.organization)]
    key, _ = await cloud.store.write(lambda sql: create_key(sql, us.organization, "second", grants, cloud.clock()))
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked(0.05)
            await cloud.store.write(lambda sql: delete_key(sql, key))
    assert [error.kind for error in caught] == [ErrorKind.NOT_FOUND]  # as for any key without a role


async def test_the_close_of_the_port_ends_the_wait(us: Tenant) -> None:
    subject = await us.submit()
    last = (await ask(us, subject))["events"][-1]["number"]
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            port = trio.CancelScope()

            async def serve() -> None:
                with port:
                    await end_waiting(us.cloud.cloud)

            nursery.start_soon(serve)
            nursery.start_soon(partial(ask, us, subject, last, wait=20))
            await trio.testing.wait_all_tasks_blocked(0.05)
            port.cancel()


async def test_a_wait_is_bounded(us: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MAX_WAIT", 0.05)
    subject = await us.submit()
    with trio.fail_after(LIMIT):
        reply = await ask(us, subject, (await ask(us, subject))["events"][-1]["number"], wait=10_000)
    assert (reply["events"], reply["ended"]) == ([], False)


async def test_calls_of_one_key_are_limited(us: Tenant) -> None:
    subject = await us.submit()
    us.cloud.cloud.openings._open[f"the key {us.cloud.first.id}"] = STREAMS
    await refused(ErrorKind.EXHAUSTED, ask(us, subject))


@pytest.mark.parametrize("field", ["after", "limit", "wait"])
async def test_negative_numbers_are_refused(us: Tenant, field: str) -> None:
    subject = await us.submit()
    text = await refused(ErrorKind.INVALID, us.call(OWN, "wait_for_events", id=subject, **{field: -1}))
    assert f"{field} (-1)" in text


async def test_pages_of_jobs(us: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MAX_JOBS", 2)
    subjects = [await us.submit(model_version=str(number)) for number in range(5)]
    listed: list[str] = []
    before, pages = 0, 0
    while True:
        reply = await us.call(OWN, "list_jobs", organization_id=us.organization, before=before, limit=100)
        listed += [job["id"] for job in reply["jobs"]]
        pages += 1
        if not (before := reply["next"]):
            break
    assert (listed, pages) == (subjects[::-1], 3)


async def test_a_listed_job_has_the_fields_of_the_published_message(us: Tenant) -> None:
    subject = await us.submit()
    published = await us.job(subject)
    (job,) = (await us.call(OWN, "list_jobs", organization_id=us.organization))["jobs"]
    assert job.pop("error") == ""
    assert job == {name: published.get(name) for name in job}


async def test_jobs_in_one_state(us: Tenant) -> None:
    first, second = await us.submit(), await us.submit(model_version="2")
    await us.call(TRAINING, "cancel_training_job", id=first)

    async def in_state(status: str) -> list[str]:
        reply = await us.call(OWN, "list_jobs", organization_id=us.organization, status=status)
        return [job["id"] for job in reply["jobs"]]

    assert (await in_state("CANCELED"), await in_state("PENDING"), await in_state("FAILED")) == ([first], [second], [])
    text = await refused(ErrorKind.INVALID, in_state("RUNNING"))
    assert "IN_PROGRESS" in text


async def test_another_organization_sees_nothing(us: Tenant) -> None:
    subject = await us.submit()
    cloud = us.cloud.cloud
    other = await cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.clock()))
    theirs = us.cloud.client(other.id)
    await refused(ErrorKind.NOT_FOUND, theirs.call(OWN, "", "wait_for_events", id=subject))
    await refused(ErrorKind.NOT_FOUND, theirs.call(OWN, "", "list_jobs", organization_id=us.organization))
