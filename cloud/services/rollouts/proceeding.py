"""Lets rollouts proceed: looks at machines when they report, and when a deadline has come."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import trio

from cloud.domain.machines import listed
from cloud.domain.rollouts import stepping
from cloud.services.common.base import Cloud
from cloud.services.common.standing import patiently

LONGEST: Final = timedelta(hours=1)
"""Longest pause: if the clock of the computer is changed, nothing notifies this task."""
PAUSE: Final = 0.1
"""Least seconds between two looks, so that the reports of many machines share transactions."""


async def run(cloud: Cloud, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Let rollouts proceed until cancelled. Run it once in each process; they share the work."""
    with cloud.events.listening(listed.DUE) as news:
        task_status.started()
        while True:
            while await patiently(lambda: cloud.store.write(lambda sql: stepping.step(sql, cloud.clock()))):
                pass
            due = await patiently(lambda: cloud.store.read(stepping.next_due))
            wait = LONGEST if due is None else min(due - cloud.clock(), LONGEST)
            await trio.sleep(PAUSE)
            with trio.move_on_after(max(wait.total_seconds() - PAUSE, 0)):
                await news.all()
