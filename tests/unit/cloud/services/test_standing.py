"""A stream ends when its caller may no longer make it, and costs no task while nothing changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import trio
import trio.testing

from cloud.domain.permissions.credentials import SIGNED_OUT
from cloud.server.memory import MemoryCloud
from cloud.services import target
from cloud.services.common.base import Cloud
from cloud.services.common.standing import until_refused, while_allowed
from cloud.store.events import Events
from cloud.store.turns import organization, working_for
from cloud.values.author import Author
from cloud.work.checks import Checks
from rpc.access.credential_types import API_KEY
from rpc.carrier import Identity
from schema.errors import ErrorKind, MachineError

ALICE = Author(API_KEY, "alice")
REFUSED = MachineError("the key is deleted", kind=ErrorKind.UNAUTHENTICATED)


@dataclass
class Store:
    """Reads wait for `gate`; `fails` is raised by each."""

    gate: trio.Event = field(default_factory=trio.Event)
    fails: Exception | None = None
    organizations: list[str] = field(default_factory=list)

    async def read(self, work: Callable[[Any], Any]) -> Any:
        await self.gate.wait()
        if self.fails is not None:
            raise self.fails
        self.organizations.append(organization())
        return work(None)


@dataclass
class Standings:
    """What `while_allowed` uses of a cloud; `refusal` is raised by each check."""

    events: Events = field(default_factory=Events)
    store: Store = field(default_factory=Store)
    checks: Checks = field(default_factory=Checks)
    refusal: Exception | None = None

    def allowed(self) -> while_allowed:
        return while_allowed(cast(Cloud, self), ALICE, self.check)

    def check(self, sql: Any) -> None:
        if self.refusal is not None:
            raise self.refusal

    @property
    def tasks(self) -> int:
        assert self.checks._nursery is not None
        return len(self.checks._nursery.child_tasks)


@pytest.fixture
async def standings() -> AsyncIterator[Standings]:
    async with opened() as result:
        yield result


@asynccontextmanager
async def opened() -> AsyncIterator[Standings]:
    result = Standings()
    result.store.gate.set()
    async with result.checks.opened():
        yield result


async def test_a_refusal_ends_the_body_with_its_error(standings: Standings) -> None:
    for topic, subject in (("key", "alice"), ("secret", "alice"), ("key", ""), (SIGNED_OUT, "alice")):
        standings.refusal = None

        async def change(topic: str = topic, subject: str = subject) -> None:
            await trio.testing.wait_all_tasks_blocked()
            standings.refusal = REFUSED
            standings.events.notify("key", "bob")
            await trio.testing.wait_all_tasks_blocked()
            assert standings.tasks == 0
            standings.events.notify(topic, subject)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            assert await until_refused(cast(Cloud, standings), ALICE, standings.check) is REFUSED
    assert not any(standings.events._listeners.values())


async def test_a_caller_that_is_refused_from_the_start(standings: Standings) -> None:
    standings.refusal = REFUSED
    assert await until_refused(cast(Cloud, standings), ALICE, standings.check) is REFUSED


async def test_a_stream_has_no_task_while_nothing_changes(standings: Standings) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    with standings.allowed(), standings.allowed():
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_a_change_during_a_check_is_checked_afterwards(standings: Standings) -> None:
    gate = standings.store.gate = trio.Event()

    async def change() -> None:
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            standings.events.notify("key", "alice")
        assert standings.tasks == 1
        standings.store.gate = trio.Event()
        gate.set()
        await trio.testing.wait_all_tasks_blocked()  # the first check has allowed it
        standings.refusal = REFUSED
        standings.store.gate.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change)
        assert await until_refused(cast(Cloud, standings), ALICE, standings.check) is REFUSED


async def test_a_check_in_progress_ends_with_the_body(standings: Standings) -> None:
    standings.store.fails = MachineError("the database is unavailable", kind=ErrorKind.UNAVAILABLE)
    with standings.allowed():
        await trio.testing.wait_all_tasks_blocked()
        assert standings.tasks == 1
    await trio.testing.wait_all_tasks_blocked()
    assert standings.tasks == 0


async def test_a_broken_check_ends_only_its_own_body(standings: Standings) -> None:
    with standings.allowed():
        await trio.testing.wait_all_tasks_blocked()
        standings.refusal = ZeroDivisionError()
        with pytest.raises(ZeroDivisionError), standings.allowed():
            await trio.sleep_forever()


async def test_an_error_of_the_body_is_not_lost(standings: Standings) -> None:
    with pytest.raises(ValueError, match="body"), standings.allowed():
        raise ValueError("body")
    with trio.CancelScope() as scope, standings.allowed():
        scope.cancel()
        await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_checks_take_turns_with_the_organization(standings: Standings) -> None:
    with working_for("acme"), standings.allowed():
        await trio.testing.wait_all_tasks_blocked()
    standings.events.notify("key", "alice")
    assert standings.store.organizations == ["acme"]


async def test_health_and_reflection_take_turns_with_the_organization(cloud: MemoryCloud) -> None:
    async with target._admitted(cloud.cloud, Identity(cloud.first.id, API_KEY)):
        assert organization() == cloud.first.organization
    assert organization() == ""


async def test_events_do_not_fail_while_the_cloud_stops() -> None:
    result = Standings()
    result.store.gate.set()
    with pytest.raises(RuntimeError, match="not open"):
        result.allowed().__enter__()
    assert not any(result.events._listeners.values())

    async def serve(*, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        with trio.CancelScope() as scope:
            async with result.checks.opened():
                task_status.started(scope)
                await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        serving: trio.CancelScope = await nursery.start(serve)
        with result.allowed():
            serving.cancel()
            await trio.testing.wait_all_tasks_blocked()
            result.events.notify("key", "alice")
            await trio.testing.wait_all_tasks_blocked()


async def test_a_refusal_is_shown_although_the_body_fails_when_it_is_cancelled(standings: Standings) -> None:
    async def fail() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("the stream is gone")

    async def stream() -> None:
        with standings.allowed():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail)
                nursery.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                standings.refusal = REFUSED
                standings.events.notify("key", "alice")

    with pytest.raises(MachineError) as caught:
        await stream()
    assert caught.value is REFUSED
