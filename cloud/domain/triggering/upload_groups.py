"""Groups of uploads: those that wait for the database at the same time are stored in one transaction.

A transaction costs several round trips and a wait for the disk, whatever it stores. While one is in progress, uploads
of the same organization wait and become the next group, so an upload without others is never delayed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import outcome
import trio

from cloud.domain.data import readings
from cloud.domain.data.readings import NewUpload
from cloud.domain.triggering.ingestion import Ingestion, ingested
from cloud.store.sql import Sql, Store
from cloud.store.turns import organization
from schema import ErrorKind, MachineError

UPLOADS: Final = 32  # in one transaction
READINGS: Final = 2000  # in one transaction, unless one upload has more; limits how long others wait for their turn

Event: TypeAlias = Callable[[str], Ingestion]
"""Makes the event of an upload for triggers and alerts from the id of the upload."""


@dataclass(frozen=True, slots=True)
class CheckedUpload:
    """An upload that its author may make, and its event if triggers or alerts use it."""

    upload: NewUpload
    event: Event | None


@dataclass(slots=True, eq=False)
class WaitingUpload:
    """An upload that waits. `check` reads permissions and source; MachineError if the upload is refused."""

    check: Callable[[Sql], CheckedUpload]
    repeatable: bool  # whether a second attempt is recognized by its key
    count: int  # of readings
    left: bool = False  # whether its caller has left
    result: outcome.Outcome[str] | None = None


@dataclass(slots=True)
class _Line:
    """The waiting uploads of an organization, oldest first; the task that has `turn` stores the next group."""

    turn: trio.Lock = field(default_factory=trio.Lock)
    waiting: deque[WaitingUpload] = field(default_factory=deque)
    users: int = 0  # tasks in `keep`

    def group(self) -> list[WaitingUpload]:
        """Remove and return the next group: the oldest upload, and those that may be stored with it."""
        group = [self.waiting.popleft()]
        count = group[0].count
        while group[0].repeatable and self.waiting and len(group) < UPLOADS:
            count += self.waiting[0].count
            if count > READINGS or not self.waiting[0].repeatable:
                break
            group.append(self.waiting.popleft())
        return group


class UploadGroups:
    """The uploads of readings of one cloud."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}  # by organization; only those with uploads

    async def keep(self, store: Store, upload: WaitingUpload) -> str:
        """Store an upload; return its id once it is durable, or raise its error.

        If cancelled while its transaction runs, the upload may be stored all the same, as with `Store.write`. Others in
        the transaction are then stored by the next group, which recognizes those that were.
        """
        name = organization()
        line = self._lines.setdefault(name, _Line())
        line.users += 1
        line.waiting.append(upload)
        try:
            async with line.turn:
                while upload.result is None:
                    await self._store(store, line, upload)
        finally:
            upload.left = True
            if upload.result is None and upload in line.waiting:
                line.waiting.remove(upload)
            line.users -= 1
            if not line.users:
                del self._lines[name]
        assert upload.result is not None
        return upload.result.unwrap()

    async def _store(self, store: Store, line: _Line, own: WaitingUpload) -> None:
        group = line.group()
        try:
            results = await _stored(store, group)
        except BaseException:  # cancelled
            line.waiting.extendleft(reversed([each for each in group if each is not own and not each.left]))
            raise
        for each, result in zip(group, results, strict=True):
            each.result = result


async def _stored(store: Store, group: Sequence[WaitingUpload]) -> Sequence[outcome.Outcome[str]]:
    """Store a group; each alone if the transaction fails, so that a bad upload costs no other."""
    try:
        return await store.write(partial(_keep, group=group))
    except Exception as error:
        if len(group) == 1 or (isinstance(error, MachineError) and error.kind is ErrorKind.UNAVAILABLE):
            return [outcome.Error(error) for _ in group]
    return [result for each in group for result in await _stored(store, [each])]


def _keep(sql: Sql, *, group: Sequence[WaitingUpload]) -> list[outcome.Outcome[str]]:
    """Store the uploads that pass their checks; return the id or the error of each."""
    results: list[outcome.Outcome[str] | None] = []
    checked: list[CheckedUpload] = []
    for each in group:
        try:
            checked.append(each.check(sql))
            results.append(None)
        except MachineError as error:
            if len(group) == 1:
                raise
            results.append(outcome.Error(error))
    kept = readings.keep(sql, [each.upload for each in checked])
    for stored, (subject, new) in zip(checked, kept, strict=True):
        if new and stored.event is not None:
            ingested(sql, stored.event(subject))
    subjects = iter(kept)
    return [outcome.Value(next(subjects)[0]) if result is None else result for result in results]
