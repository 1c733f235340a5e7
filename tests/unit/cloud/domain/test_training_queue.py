"""The queue: fair, never twice, and nothing is lost."""

from __future__ import annotations

import random
from datetime import timedelta
from functools import partial

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.domain.training import jobs, queue
from cloud.domain.training.jobs import JobRecord, NewJob
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Store
from cloud.values.author import KEY, Author
from tests.unit.cloud.conftest import BOTH, Clock
from training.jobs.events import Log, Status
from training.jobs.lifecycle import JobHappening, JobState

AUTHOR = Author(KEY, "k")


class Queue:
    def __init__(self, cloud: MemoryCloud, clock: Clock) -> None:
        self.store: Store = cloud.cloud.store
        self.clock = clock
        self.first = cloud.first.organization
        self.count = 0

    async def submit(self, owner: str = "") -> str:
        self.count += 1
        task = NewJob(owner or self.first, "d", "m", str(self.count))
        return await self.store.write(lambda sql: jobs.submit(sql, task, AUTHOR, self.clock()))

    async def organization(self, name: str) -> str:
        return (await self.store.write(lambda sql: create_owner(sql, name, self.clock()))).organization

    async def take(self, worker: str = "w") -> JobRecord | None:
        return await self.store.write(lambda sql: queue.take(sql, worker, self.clock()))

    async def end(self, subject: str, happening: JobHappening = JobHappening.COMPLETE, worker: str = "w") -> JobState:
        return await self.store.write(
            partial(queue.end, subject=subject, worker=worker, happening=happening, now=self.clock())
        )

    async def recover(self) -> None:
        await self.store.write(lambda sql: queue.recover(sql, self.clock()))

    async def job(self, subject: str) -> JobRecord:
        return await self.store.read(lambda sql: jobs.job(sql, subject))


@pytest.fixture
def line(cloud: MemoryCloud, clock: Clock) -> Queue:
    return Queue(cloud, clock)


@BOTH
async def test_organizations_take_turns(line: Queue) -> None:
    second, third = await line.organization("b"), await line.organization("c")
    names = {line.first: "a", second: "b", third: "c"}
    for owner in [line.first] * 4 + [second] * 2 + [third]:
        await line.submit(owner)
    started = []
    while (job := await line.take()) is not None:
        started.append(names[job.task.organization_id])
        await line.end(job.id)
    assert "".join(started) == "abcabaa"


async def test_the_organization_with_fewer_running_jobs_is_next(line: Queue) -> None:
    second = await line.organization("b")
    for owner in [line.first, second, line.first, second]:
        await line.submit(owner)
    running, ended = await line.take(), await line.take()
    assert running is not None
    assert ended is not None
    await line.end(ended.id)
    later = await line.take()
    assert later is not None
    assert (running.task.organization_id, ended.task.organization_id) == (line.first, second)
    assert later.task.organization_id == second  # although it was served last


async def test_jobs_of_one_organization_keep_their_order(line: Queue) -> None:
    submitted = [await line.submit() for _ in range(5)]
    assert [job.id for _ in range(5) if (job := await line.take()) is not None] == submitted
    assert await line.take() is None


async def test_a_lost_job_starts_again_and_then_fails(line: Queue) -> None:
    subject = await line.submit()
    for attempt in range(queue.ATTEMPTS):
        taken = await line.take(f"w{attempt}")
        assert taken is not None
        assert taken.attempts == attempt + 1
        line.clock.now += queue.LEASE - timedelta(seconds=1)
        await line.recover()
        assert (await line.job(subject)).state is JobState.IN_PROGRESS  # its worker may still run it
        line.clock.now += timedelta(seconds=2)
        await line.recover()
    job = await line.job(subject)
    assert job.state is JobState.FAILED
    assert "3 times" in job.reason


async def test_a_renewed_job_is_not_lost(line: Queue) -> None:
    subject = await line.submit()
    await line.take()
    for _ in range(10):
        line.clock.now += queue.LEASE / 2
        await line.store.write(lambda sql: queue.renew(sql, subject, "w", line.clock()))
        await line.recover()
    assert (await line.job(subject)).attempts == 1
    assert (await line.job(subject)).state is JobState.IN_PROGRESS


async def test_a_worker_that_lost_a_job_changes_nothing(line: Queue) -> None:
    subject = await line.submit()
    await line.take("old")
    line.clock.now += queue.LEASE + timedelta(seconds=1)
    await line.recover()
    await line.take("new")
    for work in (
        partial(queue.renew, subject=subject, worker="old", now=line.clock()),
        partial(queue.report, subject=subject, worker="old", events=[Log("x")], now=line.clock()),
        partial(queue.end, subject=subject, worker="old", happening=JobHappening.COMPLETE, now=line.clock()),
        partial(queue.give_back, subject=subject, worker="old", now=line.clock()),
    ):
        with pytest.raises(queue.LostError):
            await line.store.write(work)
    assert (await line.job(subject)).worker == "new"
    assert await line.end(subject, worker="new") is JobState.COMPLETED


async def test_a_job_that_is_given_back_loses_no_attempt(line: Queue) -> None:
    subject = await line.submit()
    for _ in range(10):
        await line.take()
        await line.store.write(lambda sql: queue.give_back(sql, subject, "w", line.clock()))
    assert (await line.job(subject)).attempts == 0
    assert (await line.job(subject)).state is JobState.PENDING


async def test_a_canceling_job_whose_worker_is_lost_is_canceled(line: Queue) -> None:
    subject = await line.submit()
    await line.take()
    await line.store.write(lambda sql: jobs.cancel(sql, subject, line.clock()))
    line.clock.now += queue.LEASE + timedelta(seconds=1)
    await line.recover()
    assert (await line.job(subject)).state is JobState.CANCELED


async def test_events_continue_where_a_reader_was(line: Queue) -> None:
    subject, other = await line.submit(), await line.submit()
    await line.take()
    first = await line.store.read(lambda sql: jobs.events_after(sql, subject, 0))
    assert [entry.event for entry in first] == [Status(JobState.PENDING), Status(JobState.IN_PROGRESS)]
    for text in ("a", "b"):
        await line.store.write(lambda sql, text=text: queue.report(sql, subject, "w", [Log(text)], line.clock()))
        await line.store.write(lambda sql: jobs.append(sql, other, [Log("theirs")], line.clock()))
    rest = await line.store.read(lambda sql: jobs.events_after(sql, subject, first[-1].number))
    assert [entry.event for entry in rest] == [Log("a"), Log("b")]


@pytest.mark.parametrize("seed", range(20))
async def test_no_job_is_lost_or_taken_twice(line: Queue, seed: int) -> None:
    """Two workers that die, renew, finish, and are slow, in a random order: at the end every job has ended once."""
    chance = random.Random(seed)
    submitted = [await line.submit() for _ in range(6)]
    held: dict[str, str] = {}  # what the workers believe
    for counter in range(400):
        doing = chance.choice(["take", "take", "end", "die", "recover", "renew", "back", "cancel"])
        subject = chance.choice(sorted(held)) if held else ""
        if doing == "take" and len(held) < 2:
            job = await line.take(f"w{counter}")
            if job is not None:
                assert job.id not in held, "it runs already"
                held[job.id] = f"w{counter}"
        elif doing == "recover":
            line.clock.now += timedelta(seconds=chance.choice([1, 100]))
            if chance.random() < 0.5:  # the workers renew, or stop, before their lease ends
                held.clear()
            for running, worker in held.items():
                await line.store.write(partial(queue.renew, subject=running, worker=worker, now=line.clock()))
            await line.recover()
        elif doing == "end" and subject:
            await line.end(subject, worker=held.pop(subject))
        elif doing == "die" and subject:
            del held[subject]
        elif doing == "back" and subject:
            worker = held.pop(subject)
            await line.store.write(partial(queue.give_back, subject=subject, worker=worker, now=line.clock()))
        elif doing == "cancel" and chance.random() < 0.1:
            target = chance.choice(submitted)
            if (await line.job(target)).state in (JobState.PENDING, JobState.IN_PROGRESS):
                await line.store.write(partial(jobs.cancel, subject=target, now=line.clock()))
    line.clock.now += timedelta(days=1)
    await line.recover()
    while (job := await line.take()) is not None:
        await line.end(job.id)
    for subject in submitted:
        job = await line.job(subject)
        assert job.state in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELED)
        events = await line.store.read(lambda sql, subject=subject: jobs.events_after(sql, subject, 0))
        ends = [entry.event for entry in events if isinstance(entry.event, Status) and entry.event.state is job.state]
        assert len(ends) == 1
