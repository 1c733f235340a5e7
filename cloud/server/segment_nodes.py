"""The node that seals readings: it makes segments of those that arrived long enough ago."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

import structlog
import trio

from cloud.blobs import Blobs
from cloud.domain.data.segments.contents import SegmentContents
from cloud.domain.data.segments.merging import merged
from cloud.domain.data.segments.reading import Files
from cloud.domain.data.segments.sealing import Changed, Due, due_sources, sealed
from cloud.store.events import Events
from cloud.store.sql import Store
from cloud.values.times import Clock, now
from nursery_graph import Node, Restart
from schema import MachineError
from support import Worker

TOPIC: Final = "data"
PAUSE: Final = 3600.0  # seconds between two looks at the sources while there are readings to be sealed some time

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.data")


def nodes(after: timedelta | None, events: Events, restart: Restart) -> list[Node]:
    """Return the node that seals readings `after` their arrival; none without."""
    if after is None:
        return []
    return [Node("segments", partial(_segments, after, events), requires={"database", "files"}, restart=restart)]


async def _segments(
    after: timedelta, events: Events, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]
) -> None:
    worker = Worker("segments")
    async with worker.opened():
        with events.listening(TOPIC) as listener:
            task_status.started()
            while True:
                waiting = await seal_all(deps["database"], deps["files"], worker, after)
                if waiting:  # nothing reports that time has passed
                    await trio.sleep(PAUSE)
                else:
                    await listener.all()


async def seal_all(store: Store, blobs: Blobs, worker: Worker, after: timedelta, clock: Clock = now) -> bool:
    """Seal all that is due; return whether there are readings that are not in segments."""
    last: int | None = 0
    waiting, failed, reason = False, 0, ""
    while last is not None:
        start, before = last, clock() - after
        due, last, more = await store.read(partial(due_sources, after=start, before=before))
        waiting = waiting or more
        random.shuffle(due)  # so that replicas rarely seal the same readings, of which all but one fail
        for source in due:
            try:
                await _seal(store, blobs, worker, source, after, clock)
            except MachineError as error:
                failed += 1
                reason = str(error)
    if failed:
        _log.warning("readings of some sources were not sealed: a later attempt will", sources=failed, reason=reason)
    return waiting


async def _seal(store: Store, blobs: Blobs, worker: Worker, due: Due, after: timedelta, clock: Clock) -> None:
    try:
        while await sealed(store, blobs, worker.run, due, clock() - after, clock):
            pass
        await merged(store, Files(blobs, SegmentContents(), worker.run), due, clock)
    except Changed:
        return  # others have sealed or deleted them; what remains is due again
