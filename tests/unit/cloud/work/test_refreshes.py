"""Refreshes of thousands of machines after one change."""

from __future__ import annotations

from collections import Counter

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from cloud.work.refreshes import Refresh, Refreshes

MANY = 500


class Machine:
    """A machine whose refreshes last until `done`."""

    def __init__(self, name: str, log: list[str], running: Counter[str]) -> None:
        self.name, self.log, self.running = name, log, running
        self.done = trio.Event()
        self.refresh: Refresh | None = None

    async def run(self, refreshes: Refreshes, organization: str) -> None:
        with refreshes.of(organization) as self.refresh:
            self.refresh.ask()
            while True:
                await self.refresh.begin()
                self.log.append(self.name)
                self.running[""] += 1
                await self.done.wait()
                self.running[""] -= 1
                self.refresh.end()


async def test_a_few_refreshes_run_at_a_time_and_organizations_take_turns() -> None:
    refreshes, log, running = Refreshes(2), list[str](), Counter[str]()
    async with trio.open_nursery() as nursery:
        machines = [Machine(f"a{number}", log, running) for number in range(6)]
        for machine in machines:
            nursery.start_soon(machine.run, refreshes, "a")
            await wait_all_tasks_blocked()
        other = Machine("b", log, running)
        nursery.start_soon(other.run, refreshes, "b")
        await wait_all_tasks_blocked()
        assert log == ["a0", "a1"]
        machines[0].done.set()
        await wait_all_tasks_blocked()
        assert log == ["a0", "a1", "b"]  # it does not wait for the others of the first organization
        for machine in (*machines, other):
            machine.done.set()
            await wait_all_tasks_blocked()
            assert running[""] <= 2
        assert sorted(log) == ["a0", "a1", "a2", "a3", "a4", "a5", "b"]
        nursery.cancel_scope.cancel()


async def test_asking_twice_before_it_runs_is_one_refresh_and_asking_while_it_runs_another() -> None:
    refreshes, log, running = Refreshes(1), list[str](), Counter[str]()
    first, second = Machine("first", log, running), Machine("second", log, running)
    async with trio.open_nursery() as nursery:
        for machine in (first, second):
            nursery.start_soon(machine.run, refreshes, "a")
            await wait_all_tasks_blocked()
        assert first.refresh
        assert second.refresh
        for _ in range(3):
            second.refresh.ask()
            first.refresh.ask()
        second.done.set()
        first.done.set()
        await wait_all_tasks_blocked()
        assert log == ["first", "second", "first"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("runs", [False, True])
async def test_a_machine_that_disconnects_gives_its_place_to_the_next(runs: bool) -> None:
    refreshes, log, running = Refreshes(1), list[str](), Counter[str]()
    machines = [Machine(name, log, running) for name in ("first", "second", "third")]
    leaving = machines[0 if runs else 1]
    scope = trio.CancelScope()

    async def run(machine: Machine) -> None:
        with scope if machine is leaving else trio.CancelScope():
            await machine.run(refreshes, "a")

    async with trio.open_nursery() as nursery:
        for machine in machines:
            nursery.start_soon(run, machine)
            await wait_all_tasks_blocked()
        scope.cancel()
        await wait_all_tasks_blocked()
        for machine in machines:
            machine.done.set()
            await wait_all_tasks_blocked()
        assert log == (["first", "second", "third"] if runs else ["first", "third"])
        nursery.cancel_scope.cancel()


async def test_a_change_for_many_machines_wakes_only_those_that_may_run() -> None:
    refreshes, woken = Refreshes(2), list[int]()

    async def follow(number: int) -> None:
        with refreshes.of("a") as refresh:
            places.append(refresh)
            while True:
                await refresh.begin()
                woken.append(number)
                await trio.lowlevel.checkpoint()
                refresh.end()

    places: list[Refresh] = []
    async with trio.open_nursery() as nursery:
        for number in range(MANY):
            nursery.start_soon(follow, number)
        await wait_all_tasks_blocked()
        for place in places:
            place.ask()
        statistics = trio.lowlevel.current_statistics()
        assert statistics.tasks_runnable <= 2
        await wait_all_tasks_blocked()
        assert sorted(woken) == list(range(MANY))
        nursery.cancel_scope.cancel()
