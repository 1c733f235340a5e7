"""Renewal of snapshot and timestamp of all repositories before they expire, and of root and targets if the cloud keeps
their keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
import trio

from cloud.domain.releases import metadata, own, repository
from cloud.services.common.base import Cloud
from cloud.store.sql import Sql
from schema import MachineError

LONGEST: Final = timedelta(hours=1)
"""Longest pause: if the clock of the computer is changed, nothing notifies this task."""
RETRY: Final = timedelta(minutes=1)
"""Pause after a failure."""
SHARE: Final = ""
"""Share of the workroom: this work belongs to no organization."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud")


async def run(cloud: Cloud, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Renew what is due until cancelled. Run it once in each process; they share the work."""
    with cloud.events.listening(repository.TOPIC) as listener:
        task_status.started()
        while True:
            pause = await renew(cloud)
            with trio.move_on_after(pause.total_seconds()):
                await listener.all()


async def renew(cloud: Cloud) -> timedelta:
    """Renew what is due, also after a failure of one repository; return the time until the next renewal."""
    times = await cloud.store.read(repository.due)
    now, failed = cloud.clock(), False
    due = [owner for owner, moment in times.items() if moment <= now]
    if due:
        await cloud.room.run(SHARE, metadata.load)
    for owner in due:
        try:
            await cloud.store.write(partial(_renew, owner=owner, now=now))
        except MachineError as error:
            failed = True
            _log.error("the metadata of releases cannot be renewed", organization=owner, reason=str(error))
    if failed:
        return RETRY
    if due:
        times = await cloud.store.read(repository.due)
    return max(timedelta(), min([LONGEST, *(moment - now for moment in times.values())]))


def _renew(sql: Sql, owner: str, now: datetime) -> None:
    own.renew(sql, owner, now)
    repository.renew(sql, owner, now)
