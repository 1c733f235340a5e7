"""Lets rollouts proceed: looks at machines when they report, and when a deadline has come."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

import structlog
import trio

from cloud.domain.machines import listed
from cloud.domain.rollouts import stepping
from cloud.services.common.base import Cloud
from cloud.services.common.standing import patiently
from cloud.store.sql import Sql

LONGEST: Final = timedelta(hours=1)
"""Longest pause: if the clock of the computer is changed, nothing notifies this task."""
PAUSE: Final = 0.1
"""Least seconds between two looks, so that the reports of many machines share transactions."""


_log: Final[structlog.stdlib.BoundLogger] = structlog.get_logger("cloud.rollouts")


async def _step(cloud: Cloud, turn: stepping.Turn) -> stepping.Turn | None:
    """Make a step; set apart what it cannot look at because of a bug, which must not stop all other rollouts."""
    position = stepping.StepPosition()

    def work(sql: Sql) -> stepping.Turn | None:
        return stepping.step(sql, cloud.clock(), turn, position)

    try:
        return await patiently(partial(cloud.store.write, work))
    except Exception:
        if not position.rollout:
            raise
        _log.exception("a rollout could not look at a machine", rollout=position.rollout, part=position.part)
    await patiently(
        partial(cloud.store.write, lambda sql: stepping.set_apart(sql, position, cloud.clock())),
    )
    return turn


async def run(cloud: Cloud, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Let rollouts proceed until cancelled. Run it once in each process; they share the work."""
    with cloud.events.listening(listed.DUE) as news:
        task_status.started()
        while True:
            turn: stepping.Turn | None = stepping.FIRST
            while turn is not None:
                turn = await _step(cloud, turn)
            due = await patiently(lambda: cloud.store.read(stepping.next_due))
            wait = LONGEST if due is None else min(due - cloud.clock(), LONGEST)
            await trio.sleep(PAUSE)
            with trio.move_on_after(max(wait.total_seconds() - PAUSE, 0)):
                await news.all()
