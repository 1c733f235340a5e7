"""Machines that report all the time do not hold up the rollouts of others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cloud.domain.rollouts import records, stepping
from cloud.domain.rollouts.life import MachineState
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.services.rollouts.rollout_help import call, fleet, fragment, plan, proceed, save


@BOTH
async def test_all_machines_have_their_turn_while_others_report_all_the_time(
    cloud: MemoryCloud, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "BATCH", 4)
    subject = await fragment(cloud)
    machines = await fleet(cloud, 8, subject)
    rollout = await call(
        cloud,
        "start_staged_rollout",
        organization_id=cloud.first.organization,
        plan=plan(subject, await save(cloud, subject), 100),
    )
    parts = sorted(machine.part for machine in machines)
    noisy, quiet, deadline = parts[:4], parts[6], parts[7]
    await proceed(cloud)
    clock.now += timedelta(minutes=11)  # all are expected to have taken the change by now

    def report(sql: Sql) -> None:
        marks = ", ".join("?" * len(noisy))
        sql.run(f"UPDATE staged_machines SET due = 0, state = 'waiting' WHERE part_id IN ({marks})", *noisy)

    def once(sql: Sql) -> None:
        sql.run("UPDATE staged_machines SET due = 0 WHERE part_id = ?", quiet)

    await cloud.cloud.store.write(once)
    turn: stepping.Turn = stepping.FIRST

    def step(sql: Sql) -> stepping.Turn:
        return stepping.step(sql, clock(), turn) or stepping.FIRST

    for _ in range(4):
        await cloud.cloud.store.write(report)
        turn = await cloud.cloud.store.write(step)
    listed = await cloud.cloud.store.read(lambda sql: records.machines(sql, rollout))
    states = {each.part: each.state for each in listed}
    assert [states[part] for part in (quiet, deadline)] == [MachineState.FAILED] * 2
