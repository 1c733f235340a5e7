"""Uploads that wait for the database at the same time are stored in one transaction, and each as if it were alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
import trio.testing

from cloud.domain.data.readings import NewUpload
from cloud.domain.data.sources import source_of
from cloud.domain.triggering import upload_groups
from cloud.domain.triggering.upload_groups import CheckedUpload, UploadGroups, WaitingUpload
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from cloud.store.turns import working_for
from schema import ErrorKind, MachineError
from support import ChangeSignal
from tests.unit.cloud.conftest import BOTH

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class GatedStore:
    """The store of a cloud, whose transactions wait for `gate` first, and are counted."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self.inner = cloud.cloud.store
        self.gate = trio.Event()
        self.writes = 0
        self.begun = ChangeSignal()
        self.failures: list[MachineError] = []
        self.after: Callable[[], None] = lambda: None

    async def read(self, work: Any) -> Any:
        return await self.inner.read(work)

    async def write(self, work: Any) -> Any:
        self.writes += 1
        self.begun.announce()
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop()
        result = await self.inner.write(work)
        self.after()
        await trio.lowlevel.checkpoint()
        return result


class Uploading:
    """Uploads of a part."""

    def __init__(self, cloud: MemoryCloud, part: str) -> None:
        self.cloud = cloud
        self.part = part
        self.groups = UploadGroups()
        self.store = GatedStore(cloud)
        self.results: dict[int, str | BaseException] = {}
        self.scopes: dict[int, trio.CancelScope] = {}

    def upload(self, number: int, *, key: str | None = "", count: int = 1) -> WaitingUpload:
        """Return an upload whose readings have the times `number`, `number + 1` and so on."""

        def check(sql: Sql) -> CheckedUpload:
            source = source_of(sql, self.part, "sensor", f"s{number % 3}", "Readings", {})
            rows = [(number + index, number + index, f'{{"x":{number}}}') for index in range(count)]
            return CheckedUpload(NewUpload(None if key is None else key or f"k{number}", source, (), rows, NOW), None)

        return WaitingUpload(check, key is not None, count)

    async def keep(self, number: int, upload: WaitingUpload | None = None, owner: str = "o") -> None:
        """Store an upload, and note its id or error."""
        try:
            with trio.CancelScope() as self.scopes[number], working_for(owner):
                self.results[number] = await self.groups.keep(self.store, upload or self.upload(number))
        except (MachineError, ValueError) as error:
            self.results[number] = error

    async def stored(self) -> list[int]:
        rows = await self.cloud.cloud.store.read(
            lambda sql: sql.rows("SELECT requested FROM readings ORDER BY requested")
        )
        return [row["requested"] for row in rows]


@pytest.fixture
def uploading(cloud: MemoryCloud, part: str) -> Uploading:
    return Uploading(cloud, part)


async def together(uploading: Uploading, *uploads: tuple[int, WaitingUpload | None]) -> None:
    """Start uploads in this order while the first transaction waits, then let it continue."""
    async with trio.open_nursery() as nursery:
        for number, upload in uploads:
            nursery.start_soon(uploading.keep, number, upload)
            await trio.testing.wait_all_tasks_blocked()
        uploading.store.gate.set()


@BOTH
async def test_uploads_that_wait_share_a_transaction(uploading: Uploading) -> None:
    await together(uploading, *((number, None) for number in range(10)))
    assert uploading.store.writes == 2  # of the first, and of all that waited for it
    assert await uploading.stored() == list(range(10))
    assert len(set(uploading.results.values())) == 10
    assert not uploading.groups._lines


@BOTH
async def test_equal_uploads_of_a_group_are_stored_once(uploading: Uploading) -> None:
    await together(uploading, (0, None), (1, uploading.upload(1, key="same")), (2, uploading.upload(1, key="same")))
    assert await uploading.stored() == [0, 1]
    assert uploading.results[1] == uploading.results[2] != uploading.results[0]
    before = uploading.results[1]
    await uploading.keep(3, uploading.upload(1, key="same"))
    assert uploading.results[3] == before
    assert await uploading.stored() == [0, 1]


@BOTH
async def test_a_refused_upload_costs_no_other(uploading: Uploading) -> None:
    def refuse(sql: Sql) -> CheckedUpload:
        raise MachineError("no", kind=ErrorKind.PERMISSION)

    await together(uploading, (0, None), (1, WaitingUpload(refuse, True, 1)), (2, None))
    assert uploading.store.writes == 2
    assert str(uploading.results[1]).startswith("no")
    assert await uploading.stored() == [0, 2]


@BOTH
async def test_a_transaction_that_fails_is_repeated_for_each_upload(uploading: Uploading) -> None:
    def fail(sql: Sql) -> CheckedUpload:
        raise ValueError("a bug")

    await together(uploading, (0, None), (1, None), (2, WaitingUpload(fail, True, 1)), (3, None))
    assert isinstance(uploading.results[2], ValueError)
    assert await uploading.stored() == [0, 1, 3]
    assert uploading.store.writes == 5  # of the first, of the group, and of each in it


async def test_an_unavailable_database_is_not_asked_for_each_upload(uploading: Uploading) -> None:
    uploading.store.failures = [MachineError("away", kind=ErrorKind.UNAVAILABLE) for _ in range(2)]
    await together(uploading, (0, None), (1, None), (2, None))
    assert uploading.store.writes == 2
    assert [str(uploading.results[number])[:4] for number in range(3)] == ["away"] * 3
    await uploading.keep(4)
    assert await uploading.stored() == [4]


@pytest.mark.parametrize("when", ["before", "after"])
@BOTH
async def test_others_are_stored_if_the_caller_that_writes_is_cancelled(uploading: Uploading, when: str) -> None:
    uploading.store.gate.set()
    await uploading.keep(0)
    uploading.store.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        for number in (1, 2, 3, 4):
            nursery.start_soon(uploading.keep, number)
            await trio.testing.wait_all_tasks_blocked()
        first = uploading.store.gate
        uploading.store.gate = trio.Event()
        begun = uploading.store.begun.next
        first.set()  # 1 is stored
        await begun.wait()  # 2 writes for 3 and 4
        if when == "before":
            uploading.scopes[2].cancel()
        else:
            uploading.store.after = uploading.scopes[2].cancel
        await trio.testing.wait_all_tasks_blocked()
        uploading.store.gate.set()
    assert sorted(uploading.results) == [0, 1, 3, 4]
    assert await uploading.stored() == ([0, 1, 3, 4] if when == "before" else [0, 1, 2, 3, 4])
    assert not uploading.groups._lines


async def test_an_upload_of_a_group_whose_caller_left_is_not_stored_by_the_next(uploading: Uploading) -> None:
    async with trio.open_nursery() as nursery:
        for number in (0, 1, 2, 3):
            nursery.start_soon(uploading.keep, number)
            await trio.testing.wait_all_tasks_blocked()
        begun, first = uploading.store.begun.next, uploading.store.gate
        uploading.store.gate = trio.Event()
        first.set()
        await begun.wait()  # 1 writes for 2 and 3
        for number in (2, 1):
            uploading.scopes[number].cancel()
            await trio.testing.wait_all_tasks_blocked()
        uploading.store.gate.set()
    assert await uploading.stored() == [0, 3]
    assert not uploading.groups._lines


async def test_a_waiting_upload_can_be_cancelled(uploading: Uploading) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(uploading.keep, number)
            await trio.testing.wait_all_tasks_blocked()
        uploading.scopes[1].cancel()
        await trio.testing.wait_all_tasks_blocked()
        uploading.store.gate.set()
    assert await uploading.stored() == [0, 2]
    assert not uploading.groups._lines


async def test_uploads_without_times_and_large_uploads_are_stored_alone(
    uploading: Uploading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload without a key must not be repeated for another one, and a large one must not delay small ones."""
    monkeypatch.setattr(upload_groups, "READINGS", 10)
    await together(
        uploading,
        (0, None),
        (100, uploading.upload(100, key=None)),
        (101, uploading.upload(200, key=None)),
        (1, None),
        (102, uploading.upload(250, key=None)),
        (300, uploading.upload(300, count=20)),
        (2, None),
        (3, None),
    )
    assert uploading.store.writes == 7
    assert len(await uploading.stored()) == 7 + 20


async def test_organizations_do_not_share_a_transaction(uploading: Uploading) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(uploading.keep, number, None, f"o{number % 2}")
            await trio.testing.wait_all_tasks_blocked()
        assert uploading.store.writes == 2
        uploading.store.gate.set()
    assert uploading.store.writes == 4
    assert await uploading.stored() == list(range(6))
