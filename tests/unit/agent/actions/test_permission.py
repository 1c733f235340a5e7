"""The facts of a decision: settings, time zone, machine-server."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from agent.actions.permission import AgentMaintenance
from agent.layout import AGENT, SERVER
from agent.leases.leases import Leases
from schema.agent.records import AdvancedSettings, MaintenanceWindow

NOON = 1_780_056_000.0  # 2026-05-29 12:00 UTC, a Friday
NIGHT = AdvancedSettings(maintenance_windows=(MaintenanceWindow(start="22:00", end="04:00"),))


async def run_now(function: Callable[[], Any]) -> Any:
    await trio.lowlevel.checkpoint()
    return function()


class World:
    """A decision maker with a clock and a machine-server that answers `refusal`."""

    def __init__(self, refusal: str | None = None, folder: Path = Path("/nonexistent"), now: float = NOON) -> None:
        self.refusal, self.now, self.asked = refusal, now, 0
        self.leases = Leases(folder, run_now, lambda: self.now, lambda: self.now - NOON)
        self.maintenance = AgentMaintenance(self._refuse, self.leases, run_now, lambda: self.now)

    async def _refuse(self) -> str | None:
        self.asked += 1
        return self.refusal


async def test_windows_of_the_settings_are_in_the_time_zone_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.maintenance.settings(NIGHT)
    monkeypatch.setenv("TZ", "UTC0")
    verdict = await world.maintenance.may_restart(SERVER, NOON, False)
    assert (verdict.allowed, verdict.reason) == (False, "the maintenance window opens at 2026-05-29 22:00 UTC")
    monkeypatch.setenv("TZ", "XYZ-11")  # 23:00 there
    assert (await world.maintenance.may_restart(SERVER, NOON, False)).allowed


async def test_a_time_zone_that_cannot_be_used_is_a_problem_if_there_are_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setenv("TZ", "nonsense")
    await world.maintenance.may_restart(SERVER, NOON, False)
    assert [*world.maintenance.problems] == []
    world.maintenance.settings(NIGHT)
    (problem,) = world.maintenance.problems
    assert problem.message.startswith("maintenance windows are in UTC: the variable TZ cannot be used")


async def test_after_the_longest_deferral_it_is_allowed() -> None:
    world = World("the arm moves")
    world.maintenance.settings(AdvancedSettings(maintenance_longest_deferral=3600.0))
    verdict = await world.maintenance.may_restart(SERVER, NOON - 3599, False)
    assert (verdict.allowed, verdict.until, verdict.latest) == (False, NOON + 1, NOON + 1)
    assert (await world.maintenance.may_restart(SERVER, NOON - 3600, False)).allowed


async def test_machine_server_is_not_asked_about_the_agent_or_a_request() -> None:
    world = World("the arm moves")
    assert (await world.maintenance.may_restart(AGENT, NOON, False)).allowed
    assert (await world.maintenance.may_restart(SERVER, NOON, True)).allowed
    assert world.asked == 0
    assert (await world.maintenance.may_restart(SERVER, NOON, False)).reason == "the arm moves"


async def test_a_change_of_the_settings_is_reported_even_before_it_is_waited_for(autojump_clock: MockClock) -> None:
    world = World()
    change = world.maintenance.change()
    world.maintenance.settings(AdvancedSettings())
    with trio.move_on_after(1) as scope:
        await change()
    assert scope.cancelled_caught, "nothing has changed"
    world.maintenance.settings(NIGHT)
    with trio.fail_after(1):
        await change()
    await wait_all_tasks_blocked()


async def test_a_lease_forbids_and_its_release_is_reported(tmp_path: Path, autojump_clock: MockClock) -> None:
    world = World(folder=tmp_path)
    change = world.maintenance.change()
    # The times of files are those of the kernel, so the clock of this test is, too.
    world.now = time.time()
    await world.leases.take("flash", 60)
    verdict = await world.maintenance.may_restart(AGENT, NOON, False)
    assert (verdict.allowed, verdict.reason[:19]) == (False, "held by flash until")
    with trio.fail_after(1):
        await change()
    change = world.maintenance.change()
    await world.leases.release("flash")
    with trio.fail_after(1):
        await change()
    assert (await world.maintenance.may_restart(AGENT, NOON, False)).allowed
