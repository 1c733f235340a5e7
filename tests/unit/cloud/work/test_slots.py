"""Fair turns among organizations: in queues, slots, threads and transactions."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from cloud.domain.permissions.homes import Homes
from cloud.server.memory import MemoryCloud
from cloud.store import postgres, sqlite
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.store.sqlite import SqliteStore
from cloud.store.turns import organization, working_for
from cloud.values.author import KEY, PART, Author
from cloud.work.crew import Crew
from cloud.work.slots import RECENT, Slots, WaitingLine
from cloud.work.workroom import Workroom
from support.worker import Worker
from tests.unit.cloud.pages import signed_in

MANY = 50  # pieces of work that one organization has queued


def taken(line: WaitingLine[str]) -> str:
    text = ""
    while (item := line.take()) is not None:
        text += item[1]
    return text


def test_organizations_take_turns_and_each_keeps_its_order() -> None:
    line: WaitingLine[str] = WaitingLine()
    for owner, items in (("a", "123"), ("b", "xy"), ("c", "!")):
        for item in items:
            line.put(owner, item)
    assert taken(line) == "1x!2y3"
    assert not line


def test_a_new_waiter_precedes_the_next_one_of_a_served_organization() -> None:
    line: WaitingLine[str] = WaitingLine()
    for item in "12345":
        line.put("a", item)
    text = ""
    for newcomer in ("b", "c"):
        text += line.take()[1]  # type: ignore[index]
        line.put(newcomer, newcomer)
        text += line.take()[1]  # type: ignore[index]
    assert text + taken(line) == "1b2c345"


def test_repeated_requests_do_not_starve_other_organizations() -> None:
    line: WaitingLine[str] = WaitingLine()
    for item in "1234":
        line.put("a", item)
    text = ""
    for _ in range(4):
        line.put("b", "b")
        text += line.take()[1] + line.take()[1]  # type: ignore[index]
    assert text == "1b2b3b4b"


def test_a_cancelled_request_leaves_the_queue() -> None:
    line: WaitingLine[str] = WaitingLine()
    line.put("a", "1")
    assert line.remove("a", "1")
    assert not line.remove("a", "1")
    assert (bool(line), line.count("a"), line.take()) == (False, 0, None)


async def test_a_slot_goes_to_another_organization_after_one_job() -> None:
    slots, order = Slots(1, 1), list[str]()

    async def work(owner: str) -> None:
        async with slots.hold(owner):
            order.append(owner)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        async with slots.hold("many"):
            for _ in range(MANY):
                nursery.start_soon(work, "many")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(work, "one")
            await trio.testing.wait_all_tasks_blocked()
    assert order.index("one") == 0
    assert len(order) == MANY + 1


async def test_one_organization_does_not_use_all_slots() -> None:
    slots = Slots(3, 2)
    async with slots.hold("a"), slots.hold("a"):
        with trio.move_on_after(0):
            await slots.take("a")
            raise AssertionError
        async with slots.hold("b"):
            pass


async def test_slots_of_cancelled_callers_are_freed() -> None:
    slots = Slots(1, 1)
    async with trio.open_nursery() as nursery:
        async with slots.hold("a"):
            for _ in range(3):
                nursery.start_soon(slots.take, "b")
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    async with slots.hold("c") as number:
        assert number == 0


# ---- threads and transactions


class Held:
    """Work that records its owner; the first piece waits until `go` is set.

    With `lead`, other work than that of "one" waits for it after so many pieces: a thread that is faster than the one
    that runs it cannot change the order.
    """

    def __init__(self, lead: int = 1000) -> None:
        self.order: list[str] = []
        self.begun, self.go, self.one_ran = threading.Event(), threading.Event(), threading.Event()
        self.lead = lead

    def __call__(self, owner: str) -> None:
        self.begun.set()
        assert self.go.wait(30)
        if owner != "one" and len(self.order) >= self.lead:
            assert self.one_ran.wait(30)
        self.order.append(owner)
        if owner == "one":
            self.one_ran.set()


Run = Callable[[str, Held], Awaitable[object]]


async def in_line(run: Run, held: Held) -> list[str]:
    """Return the order of work of two organizations: one with much queued work, and one that comes later."""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            try:
                for _ in range(MANY):
                    nursery.start_soon(run, "many", held)
                await trio.testing.wait_all_tasks_blocked()
                while not held.begun.is_set():  # noqa: ASYNC110 - threads signal no events
                    await trio.sleep(0.001)
                nursery.start_soon(run, "one", held)
                await trio.testing.wait_all_tasks_blocked()
            finally:
                held.go.set()
    return held.order


async def test_a_job_waits_for_at_most_one_job_of_another_organization() -> None:
    async with opened_crew(1, 1) as crew:
        order = await in_line(lambda owner, held: crew.run(owner, lambda _: held(owner)), Held())
    assert (order.index("one"), len(order)) == (1, MANY + 1)


async def test_a_job_does_not_wait_for_two_busy_organizations() -> None:
    held, room = Held(lead=2), Workroom()
    async with room.opened():

        async def run(owner: str, held: Held) -> None:
            async with trio.open_nursery() as nursery:
                for item in (owner,) if owner == "one" else (owner, "more"):
                    nursery.start_soon(room.run, item, lambda first=item: held(first))

        order = await in_line(run, held)
    assert order.index("one") <= 3  # it starts once one of two threads is free


@asynccontextmanager
async def opened_crew(count: int, each: int) -> AsyncIterator[Crew]:
    async with AsyncExitStack() as stack:
        workers = [Worker(f"crew {number}") for number in range(count)]
        for worker in workers:
            await stack.enter_async_context(worker.opened())
        yield Crew(workers, each)


def reading(store: Store) -> Run:
    async def run(owner: str, held: Held) -> None:
        with working_for(owner):
            await store.read(lambda sql: held(owner))

    return run


def writing(store: Store) -> Run:
    async def run(owner: str, held: Held) -> None:
        with working_for(owner):
            await store.write(lambda sql: held(owner))

    return run


async def test_a_write_waits_for_one_of_another_organization(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "HOLD", 0.0)  # one write per commit
    async with SqliteStore(tmp_path / "cloud.db", Events()).opened() as store:
        order = await in_line(writing(store), Held())
    assert (order.index("one"), len(order)) == (1, MANY + 1)


async def test_a_new_writer_joins_the_next_commit_before_served_organizations(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "cloud.db", Events()).opened() as store:
        order = await in_line(writing(store), Held())
    assert order.index("one") == 1


async def test_a_read_does_not_wait_for_reads_of_another_organization(tmp_path: Path) -> None:
    assert sqlite.READERS > sqlite.EACH
    assert postgres.CONNECTIONS > postgres.EACH
    held, end = Held(), threading.Event()
    async with SqliteStore(tmp_path / "cloud.db", Events()).opened() as store, trio.open_nursery() as nursery:
        try:
            for _ in range(MANY):
                nursery.start_soon(reading(store), "many", held)
            await trio.testing.wait_all_tasks_blocked()
            with working_for("one"), trio.fail_after(30):
                await store.read(lambda sql: None)
            assert held.order == []
        finally:
            held.go.set()
            end.set()


# ---- owner of the work


async def test_tasks_count_for_the_organization_that_started_them() -> None:
    results: list[str] = []

    async def inner() -> None:
        results.append(organization())

    with working_for("a"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(inner)
        with working_for("b"):
            results.append(organization())
        results.append(organization())
    assert [*results, organization()] == ["a", "b", "a", ""]


async def test_every_caller_has_an_organization(cloud: MemoryCloud, part: str) -> None:
    homes, store, own = Homes(), cloud.cloud.store, cloud.first.organization
    assert await homes.of(store, Author(KEY, cloud.first.id)) == own
    assert await homes.of(store, Author(PART, part)) == own
    assert await homes.of(store, Author(KEY, "gone")) == "gone"


async def test_calls_and_pages_count_for_their_organization(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await signed_in(cloud)
    await cloud.app("get_robot_part", id=part)
    results: list[str] = []
    store = cloud.cloud.store
    for name in ("read", "write"):
        done = getattr(store, name)

        async def noting(work: Callable[[Sql], object], done: Callable[..., object] = done) -> object:
            results.append(organization())
            return await done(work)  # type: ignore[misc]

        monkeypatch.setattr(store, name, noting)
    own = cloud.first.organization
    await cloud.app("update_robot_part", id=part, robot_config_json='{"x": 1}')
    calls, results[:] = list(results), []
    await person.get("/data/export?format=csv")
    assert len(calls) >= 3
    assert len(results) >= 2
    assert {*calls, *results} == {own}


async def test_a_free_slot_is_taken_without_a_checkpoint() -> None:
    slots = Slots(1, 1)
    with pytest.raises(StopIteration) as ended:
        slots.take("a").send(None)
    assert ended.value.value == 0
    waits = slots.take("b")
    assert waits.send(None) is not None  # waits in the event loop until the slot is free
    waits.close()


async def test_an_organization_has_more_slots_while_no_other_is_active(autojump_clock: object) -> None:
    slots = Slots(3, 2, shared=1)

    async def may_take_two(organization: str) -> bool:
        async with slots.hold(organization):
            with trio.move_on_after(1) as patience:
                async with slots.hold(organization):
                    pass
        return not patience.cancelled_caught

    assert await may_take_two("a")
    async with slots.hold(""):
        pass
    assert await may_take_two("a"), "the cloud's own work is not another organization's"
    async with slots.hold("b"):
        pass
    assert not await may_take_two("a")
    for _ in range(RECENT):
        async with slots.hold("a"):
            pass
    assert await may_take_two("a")
