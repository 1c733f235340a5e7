"""A cloud that is killed before or after any transaction loses and doubles nothing of a rollout."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest
import trio

from cloud.domain.rollouts import records, stepping
from cloud.server.memory import MemoryCloud, open_cloud
from cloud.services.rollouts import proceeding
from cloud.store.sql import Sql, Store, Work
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.services.rollouts.rollout_help import Machine, call, fleet, fragment, plan, save

T = TypeVar("T")
MINUTES = 30


class Killed(Exception):
    """The process was killed."""


@dataclass
class Mortal:
    """A store whose process dies in some transactions: before the commit, or after it."""

    store: Store
    deaths: random.Random
    share: float
    kills: int = 0

    async def read(self, work: Work[T]) -> T:
        return await self.store.read(work)

    async def write(self, work: Work[T]) -> T:
        fate = self.deaths.random()

        def dying(sql: Sql) -> T:
            result = work(sql)
            if fate < self.share / 2:
                raise Killed
            return result

        try:
            result = await self.store.write(dying)
        except Killed:
            self.kills += 1
            raise
        if fate < self.share:
            self.kills += 1
            raise Killed
        return result


@dataclass
class Outcome:
    """What a rollout came to."""

    kills: int = 0
    states: dict[str, str] = field(default_factory=dict)
    revisions: list[str] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    counts: list[Any] = field(default_factory=list)


async def proceed(store: Mortal, clock: Clock) -> None:
    """Let rollouts proceed, in a new process after each death."""
    while True:
        try:
            while await store.write(lambda sql: stepping.step(sql, clock())):
                pass
        except Killed:
            continue
        return


async def lived(seed: int, clock: Clock, cloud: MemoryCloud, share: float) -> Outcome:
    chance = random.Random(seed)
    store = Mortal(cloud.cloud.store, random.Random(seed + 1), share)
    subject = await fragment(cloud)
    machines = await fleet(cloud, 12, subject)
    broken = {machine.name for machine in machines if chance.random() < 0.3}
    limit = chance.choice((0, 2, None))
    new = await save(cloud, subject)
    chosen = plan(subject, new, 25, 50, 100, stop_after=limit)
    owner = cloud.first.organization
    rollout = await call(cloud, "start_staged_rollout", organization_id=owner, plan=chosen)
    await ordered(cloud, rollout)
    for machine in machines:
        machine.breaks = machine.name in broken
    for minute in range(MINUTES):
        clock.now = clock.now.replace(microsecond=0) + timedelta(minutes=1)
        for machine in machines:
            if chance.random() < 0.8:
                await machine.follow(new)
        await proceed(store, clock)
        if minute == MINUTES - 4:
            state = (await call(cloud, "get_staged_rollout", organization_id=owner, id=rollout))["rollout"]["state"]
            if state == "stopped":
                await call(cloud, "change_staged_rollout", organization_id=owner, id=rollout, action="back")
    revisions = [await machine.follow(new) for machine in machines]
    await proceed(store, clock)

    def read(sql: Sql) -> Outcome:
        states = {each.name: each.state.value for each in records.machines(sql, rollout)}
        events = [(each.kind, each.detail) for each in records.events(sql, rollout)]
        counts = records.counts(sql, rollout)
        for stage, by_state in enumerate(counts):  # the counters agree with what they count
            for state, count in by_state.items():
                members = records.machines(sql, rollout, state.value)
                assert sum(each.stage == stage for each in members) == count
        return Outcome(store.kills, states, revisions, events, counts)

    return await cloud.cloud.store.read(read)


async def ordered(cloud: MemoryCloud, rollout: str) -> None:
    """Give machines to stages by name, so that two rollouts with other ids are alike."""

    def work(sql: Sql) -> None:
        stages = [(each.name, each.part, each.stage) for each in records.machines(sql, rollout)]
        for (_, part, _), stage in zip(sorted(stages), sorted(stage for _, _, stage in stages), strict=True):
            sql.run("UPDATE staged_machines SET stage = ? WHERE rollout_id = ? AND part_id = ?", stage, rollout, part)
        sql.run("UPDATE staged_machines SET state = 'pending', watched = 0, due = NULL WHERE rollout_id = ?", rollout)
        sql.run("DELETE FROM staged_counts WHERE rollout_id = ?", rollout)
        for stage, count in enumerate((3, 3, 6)):
            records.add(sql, rollout, stage, records.MachineState.PENDING, count)
        entry = records.by_id(sql, rollout)
        records.include(sql, entry, 0, entry.created)

    await cloud.cloud.store.write(work)


@asynccontextmanager
async def fresh(url: str) -> AsyncIterator[tuple[MemoryCloud, Clock]]:
    clock = Clock()
    async with open_cloud(clock, url) as cloud:
        yield cloud, clock


@BOTH
@pytest.mark.parametrize("seed", range(4))
async def test_a_killed_cloud_brings_a_rollout_to_the_same_end(seed: int, database: str) -> None:
    async with fresh("") as (cloud, clock):
        calm = await lived(seed, clock, cloud, 0)
    async with fresh(database) as (cloud, clock):
        killed = await lived(seed, clock, cloud, 0.5)
    assert (calm.kills, killed.kills > 5) == (0, True)
    assert replace(killed, kills=0) == calm


async def test_rollouts_proceed_when_machines_report(cloud: MemoryCloud) -> None:
    """Without polling: each report of a machine lets its rollout go on."""
    subject = await fragment(cloud)
    machines = await fleet(cloud, 6, subject)
    new = await save(cloud, subject)

    async def obey(machine: Machine) -> None:
        with cloud.cloud.events.listening("part", machine.part) as news:
            while True:
                await machine.follow()
                await news.next()

    async with trio.open_nursery() as nursery:
        await nursery.start(proceeding.run, cloud.cloud)
        for machine in machines:
            nursery.start_soon(obey, machine)
        with cloud.cloud.events.listening(records.TOPIC) as news, trio.fail_after(30):
            chosen = plan(subject, new, 10, 50, 100, soak_seconds=0)
            owner = cloud.first.organization
            rollout = await call(cloud, "start_staged_rollout", organization_id=owner, plan=chosen)
            while True:
                reply = await call(cloud, "get_staged_rollout", organization_id=owner, id=rollout)
                if reply["rollout"]["state"] == "finished":
                    break
                await news.next()
        nursery.cancel_scope.cancel()
    assert [stage["healthy"] for stage in reply["rollout"]["stages"]] == [1, 2, 3]
