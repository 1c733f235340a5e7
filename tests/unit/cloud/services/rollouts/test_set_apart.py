"""A machine that a bug keeps from being looked at stops neither other machines nor other rollouts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import trio

from cloud.domain.rollouts import records, stepping
from cloud.domain.rollouts.life import MachineState
from cloud.server.memory import MemoryCloud
from cloud.services.rollouts import proceeding
from cloud.store.sql import Sql
from cloud.values.times import moment_of
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.services.rollouts.rollout_help import Machine, call, fleet, fragment, plan, save


async def _started(cloud: MemoryCloud, machines: int) -> tuple[str, list[Machine]]:
    """Start a rollout to all of some machines; return its id."""
    subject = await fragment(cloud)
    members = await fleet(cloud, machines, subject)
    where = cloud.first.organization
    started: str = await call(
        cloud, "start_staged_rollout", organization_id=where, plan=plan(subject, await save(cloud, subject), 100)
    )
    return started, members


def _damage(sql: Sql, part: str) -> None:
    sql.run("UPDATE parts SET reported = ? WHERE id = ?", "not JSON", part)


async def _until(cloud: MemoryCloud, rollout: str, part: str, state: MachineState) -> None:
    """Let rollouts proceed until a machine has a state."""

    def states(sql: Sql) -> dict[str, MachineState]:
        return {each.part: each.state for each in records.machines(sql, rollout)}

    with cloud.cloud.events.listening(records.TOPIC) as news:
        async with trio.open_nursery() as nursery:
            await nursery.start(proceeding.run, cloud.cloud)
            while (await cloud.cloud.store.read(states))[part] is not state:
                await news.next()
            nursery.cancel_scope.cancel()


@BOTH
async def test_a_machine_that_cannot_be_looked_at_stops_no_other_one(cloud: MemoryCloud, clock: Clock) -> None:
    rollout, machines = await _started(cloud, 3)
    for machine in machines:
        await machine.follow()
    broken, *others = sorted(machines, key=lambda machine: machine.part)
    await cloud.cloud.store.write(lambda sql: _damage(sql, broken.part))
    for other in others:
        await _until(cloud, rollout, other.part, MachineState.UPDATED)
    due = await cloud.cloud.store.read(lambda sql: _due(sql, broken.part))
    assert due - clock() > stepping.BROKEN - timedelta(minutes=1)


@BOTH
async def test_a_rollout_that_cannot_go_on_stops_no_other_one(
    cloud: MemoryCloud, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout, (machine, other) = await _started(cloud, 2)
    settle, failed = stepping.settle, list[str]()

    def fails_at_first(sql: Sql, subject: str, *arguments: Any) -> None:
        if not failed:
            failed.append(subject)
            raise ZeroDivisionError
        settle(sql, subject, *arguments)

    monkeypatch.setattr(stepping, "settle", fails_at_first)
    await machine.follow()
    position = stepping.StepPosition()
    with pytest.raises(ZeroDivisionError):
        await cloud.cloud.store.write(lambda sql: stepping.step(sql, clock(), stepping.FIRST, position))
    assert (position.rollout, position.part) == (rollout, "")
    await cloud.cloud.store.write(lambda sql: stepping.set_apart(sql, position, clock()))
    due = await cloud.cloud.store.read(lambda sql: _due(sql, machine.part))
    assert due - clock() > stepping.BROKEN - timedelta(minutes=1)
    clock.now += timedelta(minutes=1)
    await other.follow()  # a report is looked at all the same
    await _until(cloud, rollout, other.part, MachineState.UPDATED)


def _due(sql: Sql, part: str) -> Any:
    row = sql.row("SELECT due FROM staged_machines WHERE part_id = ?", part)
    return None if row is None or row["due"] is None else moment_of(row["due"])
