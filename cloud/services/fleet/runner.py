"""Works on jobs of many machines, one machine after the other, in turns among the jobs."""

from __future__ import annotations

from typing import Final

import trio

from cloud.domain.fleet import jobs
from cloud.domain.fleet.jobs import LEASE, RUNNING, WAITING, Job
from cloud.domain.machines import listed
from cloud.services.common.base import Cloud
from cloud.services.common.standing import patiently
from cloud.services.fleet.applying import apply
from schema import ErrorKind, MachineError

PACE: Final = 0.05
"""Least seconds between two machines, so that they do not all load their configurations at once."""
TURN: Final = 20
"""Machines of a job before it is another job's turn."""
BATCH: Final = 100
"""Rows of lists in one transaction."""


async def run(cloud: Cloud, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Work on jobs until cancelled. Run it once in each process; they share the work."""
    with cloud.events.listening(jobs.TOPIC) as news:
        task_status.started()
        while await patiently(lambda: cloud.store.write(lambda sql: listed.refresh_stale(sql, BATCH))):
            pass
        while True:
            while await run_next(cloud):
                pass
            due = await patiently(lambda: cloud.store.read(jobs.next_claim))
            wait = LEASE if due is None else due - cloud.clock()
            with trio.move_on_after(max(wait.total_seconds(), PACE)):
                await news.all()


async def run_next(cloud: Cloud, pace: float = PACE) -> bool:
    """Work on the job that has waited longest, for a turn; return False if there is none."""
    job = await patiently(lambda: cloud.store.write(lambda sql: jobs.claim(sql, cloud.clock())))
    if job is None:
        return False
    for _ in range(TURN):
        if not await run_machine(cloud, job):
            return True
        await trio.sleep(pace)
    await patiently(lambda: cloud.store.write(lambda sql: jobs.release(sql, job.id, cloud.clock())))
    return True


async def run_machine(cloud: Cloud, job: Job) -> bool:
    """Do the next machine of a job; return False if the job has ended or was deleted, as with its organization."""
    try:
        state, waiting = await patiently(
            lambda: cloud.store.read(
                lambda sql: (jobs.job(sql, job.id).state, jobs.machines(sql, job.id, WAITING, limit=1))
            )
        )
    except MachineError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return False
    if state != RUNNING or not waiting:
        return False
    await apply(cloud, job, waiting[0])
    return True
