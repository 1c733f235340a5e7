"""Upgrades by the agent, on a machine in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from agent.configure.managed import ASK_AGAIN, ManagedUpgrades
from agent.control.report import WaitReport
from agent.system import upgrades
from agent.system.os_release import parse_os_release
from agent.system.programs import Done
from agent.system.upgrades import DISTRIBUTIONS
from schema.agent.records import AdvancedSettings
from schema.errors import ErrorKind, MachineError
from tests.unit.agent.configure.machine import InlineWorker, System, configuration, maintenance
from tests.unit.agent.system import samples

HOUR = 3600.0
ALL = configuration(os_auto_upgrade_type="managed-all")
SECURITY = configuration(os_auto_upgrade_type="managed-security")
UPGRADE = ["dpkg --force-confdef --force-confold --configure -a", "apt-get update", "apt-get upgrade --with-new-pkgs"]
REBOOT = "systemctl reboot"
DONE = Done(0, "3 upgraded, 1 newly installed, 0 to remove and 0 not upgraded.\n")


class World:
    def __init__(self, folder: Path) -> None:
        self.system = System(folder)
        self.system.failing["apt-get upgrade"] = DONE
        self.refusal: str | None = None
        self.boot = "boot 1"
        self.time = 1_800_000_000.0
        self.required = folder / "var/run/reboot-required"
        self.required.parent.mkdir(parents=True)
        self.maintenance = maintenance(self._refuses, folder, self.now)
        self.restart()

    def restart(self) -> None:
        """Continue as after a restart of the agent."""
        self.part = ManagedUpgrades(
            self.system.store, self.system, self.system.apt, self.system.os_release, self.maintenance,
            InlineWorker().run, root=self.system.root, now=self.now, boot=lambda: self.boot,
        )  # fmt: skip

    def now(self) -> float:
        return self.time

    async def _refuses(self) -> str | None:
        await trio.lowlevel.checkpoint()
        return self.refusal


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_packages_are_upgraded_at_once_and_then_once_in_each_interval(world: World) -> None:
    assert await world.part.apply(ALL) == HOUR
    assert world.system.taken() == UPGRADE
    assert world.system.store.record.managed.outcome == "4 packages upgraded"
    world.time += 23 * HOUR
    await world.system.restarted()
    world.restart()
    assert await world.part.apply(ALL) == pytest.approx(HOUR)
    assert world.system.taken() == []
    world.time += HOUR
    await world.part.apply(ALL)
    assert world.system.taken() == UPGRADE


async def test_only_security_repositories_are_used(world: World) -> None:
    preferences = world.system.root / "etc/apt/preferences"
    preferences.parent.mkdir(parents=True, exist_ok=True)
    preferences.write_text("Package: mine\nPin: version 1*\nPin-Priority: 1001\n")
    await world.part.apply(SECURITY)
    pins = (world.system.layout.run / "apt-preferences").read_text()
    assert pins.index("n=/security/") < pins.index("Pin: release *\nPin-Priority: -1") < pins.index("Package: mine")
    assert world.system.taken()[-1] == UPGRADE[-1]  # the option with the pins is checked with the real apt
    assert preferences.read_text().startswith("Package: mine")


async def test_an_upgrade_waits_for_maintenance(world: World) -> None:
    world.refusal = "the door is open"
    began = world.now()
    assert await world.part.apply(ALL) == ASK_AGAIN
    world.time += ASK_AGAIN
    await world.system.restarted()
    world.restart()
    assert await world.part.apply(ALL) == ASK_AGAIN
    assert world.system.taken() == []
    assert world.part.waiting is not None
    assert world.part.waiting == WaitReport("an upgrade of packages: the door is open", began)
    world.refusal = None
    await world.part.apply(ALL)
    assert world.system.taken() == UPGRADE
    assert world.system.store.record.managed.since == 0.0


async def test_it_waits_no_longer_than_the_longest_deferral(world: World) -> None:
    world.maintenance.settings(AdvancedSettings(maintenance_longest_deferral=10 * HOUR))
    world.refusal = "busy"
    for _ in range(10):
        assert await world.part.apply(ALL) == ASK_AGAIN
        world.time += HOUR
    assert world.system.taken() == []
    await world.part.apply(ALL)
    assert world.system.taken() == UPGRADE


async def test_an_upgrade_that_failed_is_reported_and_repeated(world: World) -> None:
    world.system.failing["apt-get upgrade"] = Done(100, "E: Could not get lock /var/lib/dpkg/lock-frontend.")
    with pytest.raises(MachineError, match="another program installs packages") as caught:
        await world.part.apply(ALL)
    assert caught.value.kind is ErrorKind.EXHAUSTED
    assert world.system.store.record.managed.outcome.startswith("failed: apt-get upgrade: another program")
    world.system.failing["apt-get upgrade"] = DONE
    world.system.taken()
    await world.part.apply(ALL)
    assert world.system.taken() == UPGRADE


async def test_a_required_reboot_waits_for_maintenance(world: World) -> None:
    await world.part.apply(ALL)
    world.system.taken()
    world.required.touch()
    world.refusal = "busy"
    assert await world.part.apply(ALL) == ASK_AGAIN
    assert world.part.waiting is not None
    assert world.part.waiting.reason == "a reboot for upgraded packages: busy"
    assert world.system.taken() == []
    world.refusal = None
    await world.part.apply(ALL)
    assert world.system.taken() == [REBOOT]


async def test_it_does_not_reboot_again_and_again(world: World) -> None:
    await world.part.apply(ALL)
    world.required.touch()
    await world.part.apply(ALL)
    assert world.system.taken()[-1] == REBOOT
    await world.part.apply(ALL)  # the reboot has failed, or takes long
    assert world.system.taken() == [REBOOT]
    world.boot = "boot 2"
    await world.system.restarted()
    world.restart()
    await world.part.apply(ALL)
    assert world.system.taken() == []
    (problem,) = world.part.problems
    assert "still exists after the machine was rebooted" in problem.message
    world.required.unlink()
    await world.part.apply(ALL)
    assert world.part.problems == ()


@pytest.mark.parametrize("kind", ["", "all", "security", "disable"])
async def test_other_types_neither_upgrade_nor_reboot(world: World, kind: str) -> None:
    world.required.touch()
    assert await world.part.apply(configuration(os_auto_upgrade_type=kind)) is None
    assert await world.part.apply(None) is None
    assert world.system.taken() == []


async def test_a_clock_that_was_wrong_does_not_stop_upgrades(world: World) -> None:
    world.time += 10 * 365 * 24 * HOUR
    await world.part.apply(ALL)
    world.time -= 10 * 365 * 24 * HOUR
    world.system.taken()
    await world.part.apply(ALL)
    assert world.system.taken() == UPGRADE


async def test_another_distribution_is_a_problem(world: World) -> None:
    world.system.release = parse_os_release(samples.FEDORA)
    with pytest.raises(MachineError, match="cannot upgrade packages on 'Fedora"):
        await world.part.apply(ALL)
    assert "fedora" not in DISTRIBUTIONS


async def test_unattended_upgrades_are_switched_off_meanwhile(world: World) -> None:
    await world.system.upgrades.apply(ALL)
    assert 'Unattended-Upgrade "0"' in (world.system.text(upgrades.PERIODIC_PATH) or "")
    assert not world.system.timers["apt-daily-upgrade.timer"]
