"""The task that follows the settings, in virtual time."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import trio
import trio.testing

from agent.configure.configuration import FIRST_RETRY, LONGEST_RETRY, SystemConfigurator
from agent.control.settings import SettingsState
from agent.parts import PartStates, at_once, part
from agent.system import journald
from agent.system.programs import Done
from nursery_graph import Graph
from tests.unit.agent.configure.machine import InlineWorker, System, maintenance, never, uploads_nothing
from tests.unit.agent.supervise.test_supervisor import run_now
from tests.unit.agent.system import samples

SECTION, ADVANCED = "system_configuration", "advanced_settings"
CONNECTION = "connection"
RESTART = "systemctl restart systemd-journald.service"


class World:
    def __init__(self, folder: Path, *, enabled: bool = True) -> None:
        self.system = System(folder)
        (folder / "etc").mkdir()
        (folder / "etc/os-release").write_text(samples.DEBIAN_12)
        self.settings = SettingsState(folder / "defaults", folder / "stored", run_now)
        self.configurator = SystemConfigurator(
            self.system.layout,
            self.settings,
            maintenance(never, folder),
            uploads_nothing,
            enabled=enabled,
            root=folder,
            programs=self.system,
            worker=InlineWorker(),
        )
        self.graph = Graph()
        self.graph.apply([*self.configurator.nodes(CONNECTION), part(CONNECTION, at_once(trio.sleep_forever))])
        self.states = PartStates(self.graph)

    async def change(self, **sections: Any) -> None:
        await self.settings.apply(sections)
        await trio.testing.wait_all_tasks_blocked()


async def test_settings_are_applied_at_once_and_undone_by_the_switch(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    world = World(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.graph.run)
        await trio.testing.wait_all_tasks_blocked()
        assert world.system.text(journald.PATH) is not None
        await world.change(**{SECTION: {"os_auto_upgrade_type": "all"}})
        assert len(world.configurator.report().files) == 3
        await world.change(
            **{SECTION: {"os_auto_upgrade_type": "all"}, ADVANCED: {"disable_system_configuration": True}}
        )
        assert world.configurator.report().files == ()
        assert world.configurator.problems == ()
        nursery.cancel_scope.cancel()


async def test_a_failure_is_repeated_with_growing_pauses_and_stops_nothing_else(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.system.failing[RESTART] = Done(1, "", "no such unit")
    announced: list[int] = []

    async def follow() -> None:
        async with aclosing(world.configurator.changes()) as changes:
            async for _ in changes:
                announced[:] = [len(world.configurator.problems)]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        nursery.start_soon(world.graph.run)
        await trio.sleep(FIRST_RETRY * 8)
        assert announced == [1]
        assert world.system.taken().count(RESTART) == 4  # at 0, 30, 90 and 210 s
        (problem,) = world.configurator.problems
        assert problem.path == "agent.system_configuration.logging_journald_system_max_use_megabytes"
        assert "no such unit" in problem.message
        await world.change(**{SECTION: {"os_auto_upgrade_type": "disable"}})
        assert "systemctl disable --now apt-daily-upgrade.timer" in world.system.taken()
        await trio.sleep(86400)
        assert 24 <= world.system.taken().count(RESTART) <= 32
        world.system.failing.clear()
        await trio.sleep(LONGEST_RETRY * 1.2)
        assert world.configurator.problems == ()
        assert announced == [0]
        nursery.cancel_scope.cancel()


async def test_a_defect_of_a_part_is_reported_and_ends_nothing(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.system.policy = None  # type: ignore[assignment]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.graph.run)
        await world.change(**{SECTION: {"os_auto_upgrade_type": "all"}})
        (problem,) = world.states.problems
        assert problem.path == "machine-agent, system configuration: unattended upgrades"
        assert "AttributeError" in problem.message
        assert world.system.text(journald.PATH) is not None
        nursery.cancel_scope.cancel()


async def test_without_systemd_nothing_is_done_and_a_configuration_is_a_problem(tmp_path: Path) -> None:
    world = World(tmp_path, enabled=False)
    before = world.system.tree()
    assert world.configurator.nodes() == []
    assert not world.configurator.problems
    await world.settings.apply({SECTION: {"os_auto_upgrade_type": "all", "forward_system_logs": "all"}})
    (problem,) = world.configurator.problems
    assert problem.path == "agent.system_configuration"
    assert "--dev-mode" in problem.message
    assert world.system.tree() - before == {"stored"}
