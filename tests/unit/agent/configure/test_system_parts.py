"""The journal's limits and unattended upgrades, on a machine in memory with real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.system import journald, upgrades
from agent.system.os_release import parse_os_release
from agent.system.programs import Done
from agent.system.state import RECORD
from schema.errors import ErrorKind, MachineError
from tests.unit.agent.configure.machine import System, configuration
from tests.unit.agent.system import samples

RESTART = ["systemctl restart systemd-journald.service", "journalctl --flush"]
MAIN, SIZE = "logging_journald_system_max_use_megabytes", "logging_journald_runtime_max_use_megabytes"
UPDATE_TIMER, UPGRADE_TIMER = "apt-daily.timer", "apt-daily-upgrade.timer"


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


# ---- the journal


async def test_journald_is_restarted_only_if_its_limits_change(system: System) -> None:
    await system.journal.apply(configuration())
    assert "SystemMaxUse=512M" in (system.text(journald.PATH) or "")
    assert system.taken() == RESTART
    await system.restarted()
    await system.journal.apply(configuration())
    assert system.taken() == []
    await system.journal.apply(configuration(**{MAIN: 64}))
    assert system.taken() == RESTART
    assert system.store.files == (f"/{journald.PATH}",)


async def test_without_limits_there_is_no_file(system: System) -> None:
    await system.journal.apply(configuration(**{MAIN: -1, SIZE: -1}))
    assert system.text(journald.PATH) is None
    assert system.taken() == []
    await system.journal.apply(configuration(**{MAIN: 64, SIZE: -1}))
    assert "RuntimeMaxUse" not in (system.text(journald.PATH) or "RuntimeMaxUse")
    system.taken()
    await system.journal.apply(configuration(**{MAIN: -1, SIZE: -1}))
    assert system.text(journald.PATH) is None
    assert system.taken() == RESTART


async def test_a_journal_in_memory_is_not_flushed(system: System) -> None:
    await system.journal.apply(configuration(logging_journald_storage="volatile"))
    assert system.taken() == RESTART[:1]


async def test_a_restart_that_failed_is_repeated_after_a_restart_of_the_agent(system: System) -> None:
    system.failing[RESTART[0]] = Done(1, "", "Job for systemd-journald.service failed.")
    with pytest.raises(MachineError, match="Job for systemd-journald"):
        await system.journal.apply(configuration())
    assert system.text(journald.PATH) is not None
    system.failing.clear()
    system.taken()
    await system.restarted()
    await system.journal.apply(configuration())
    assert system.taken() == RESTART


async def test_a_file_that_a_person_has_changed_is_left_and_reported(system: System) -> None:
    await system.journal.apply(configuration())
    (system.root / journald.PATH).write_text("[Journal]\nSystemMaxUse=1G\n")
    system.taken()
    for desired in (configuration(**{MAIN: 64}), None):
        with pytest.raises(MachineError, match="changed since machine-agent wrote it") as caught:
            await system.journal.apply(desired)
        assert caught.value.remedy
    assert system.text(journald.PATH) == "[Journal]\nSystemMaxUse=1G\n"
    assert system.taken() == []


async def test_disabling_removes_the_file_and_restarts_journald(system: System) -> None:
    before = system.tree()
    await system.journal.apply(configuration())
    system.taken()
    await system.journal.apply(None)
    assert system.tree() == before
    assert system.taken() == RESTART
    assert system.store.files == ()


# ---- unattended upgrades


async def test_security_upgrades_are_enabled_without_touching_the_files_of_others(system: System) -> None:
    folder = system.root / "etc/apt/apt.conf.d"
    folder.mkdir(parents=True)
    (folder / "50unattended-upgrades").write_text("mine\n")
    system.timers = {UPDATE_TIMER: True, UPGRADE_TIMER: False}
    await system.upgrades.apply(configuration(os_auto_upgrade_type="security"))
    assert system.taken() == [f"systemctl enable --now {UPGRADE_TIMER}"]
    text = system.text(upgrades.ORIGINS_PATH) or ""
    assert '"origin=Debian,codename=bookworm-security"' in text
    assert 'codename=bookworm"' not in text
    assert (folder / "50unattended-upgrades").read_text() == "mine\n"
    await system.upgrades.apply(None)
    assert system.timers == {UPDATE_TIMER: True, UPGRADE_TIMER: False}
    assert [path.name for path in folder.iterdir()] == ["50unattended-upgrades"]


@pytest.mark.parametrize(
    ("release", "policy"),
    [
        (samples.DEBIAN_13, samples.POLICY_DEBIAN),
        (samples.RASPBIAN_11, samples.POLICY_RASPBIAN),
        (samples.UBUNTU_24, samples.POLICY_UBUNTU),
    ],
    ids=["debian", "raspberry", "ubuntu"],
)
async def test_all_upgrades_on_each_distribution(system: System, release: str, policy: str) -> None:
    system.release, system.policy = parse_os_release(release), policy
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    assert system.text(upgrades.PERIODIC_PATH) is not None
    assert system.text(upgrades.ORIGINS_PATH) is not None


async def test_repositories_of_the_time_of_enabling_are_included_and_later_ones_are_not(system: System) -> None:
    system.policy += samples.POLICY_CUSTOM.partition("\n")[2]
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    text = system.text(upgrades.ORIGINS_PATH)
    assert text is not None
    assert "origin=Google" in text
    system.policy += samples.POLICY_RASPBERRY.partition("\n")[2]
    (system.root / upgrades.ORIGINS_PATH).unlink()
    await system.restarted()
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    assert system.text(upgrades.ORIGINS_PATH) == text  # written again, with the same repositories
    await system.upgrades.apply(configuration())
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    assert "Raspberry Pi Foundation" in (system.text(upgrades.ORIGINS_PATH) or "")


async def test_repositories_are_read_again_after_an_upgrade_of_the_distribution(system: System) -> None:
    await system.upgrades.apply(configuration(os_auto_upgrade_type="security"))
    system.release, system.policy = (
        parse_os_release(samples.DEBIAN_13),
        samples.POLICY_DEBIAN.replace("bookworm", "trixie"),
    )
    await system.upgrades.apply(configuration(os_auto_upgrade_type="security"))
    assert "codename=trixie-security" in (system.text(upgrades.ORIGINS_PATH) or "")


async def test_a_missing_package_is_installed_and_not_switched_on_by_itself(system: System) -> None:
    system.packages.discard("unattended-upgrades")
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    update, preseed, install = system.taken()
    assert update == "apt-get update"
    assert "enable_auto_updates boolean false" in preseed
    assert install == "apt-get install --no-install-recommends unattended-upgrades"


async def test_missing_package_lists_are_fetched(system: System) -> None:
    system.updated_policy, system.policy = system.policy, "Package files:\nPinned packages:\n"
    await system.upgrades.apply(configuration(os_auto_upgrade_type="security"))
    assert system.taken() == ["apt-get update"]
    assert system.text(upgrades.ORIGINS_PATH) is not None


@pytest.mark.parametrize(
    "message",
    [
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get)",
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?",
    ],
)
async def test_a_lock_is_a_plain_problem_and_the_rest_is_done_later(system: System, message: str) -> None:
    system.packages.discard("unattended-upgrades")
    system.failing["apt-get install"] = Done(100, f"Reading package lists...\n{message}\n")
    with pytest.raises(MachineError, match="another program installs packages") as caught:
        await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    assert caught.value.kind is ErrorKind.EXHAUSTED
    system.failing.clear()
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    assert "unattended-upgrades" in system.packages


async def test_without_network_the_reason_is_that_of_apt(system: System) -> None:
    system.packages.discard("unattended-upgrades")
    system.failing["apt-get update"] = Done(
        100, "Err:1\nE: Failed to fetch http://mirror.example.com/ Could not resolve"
    )
    with pytest.raises(MachineError, match=r"apt-get update has failed: E: Failed to fetch") as caught:
        await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    assert "run `apt-get update`" in caught.value.remedy


@pytest.mark.parametrize("kind", ["disable", "managed-all", "managed-security"])
async def test_automatic_upgrades_are_switched_off_and_back_on(system: System, kind: str) -> None:
    before = system.tree()
    await system.upgrades.apply(configuration(os_auto_upgrade_type=kind))
    assert system.timers == {UPDATE_TIMER: True, UPGRADE_TIMER: False}
    assert 'Unattended-Upgrade "0"' in (system.text(upgrades.PERIODIC_PATH) or "")
    await system.upgrades.apply(configuration())
    assert system.timers == {UPDATE_TIMER: True, UPGRADE_TIMER: True}
    assert system.tree() == before


async def test_the_state_of_a_timer_before_the_first_change_is_restored(system: System) -> None:
    system.timers[UPGRADE_TIMER] = False
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    assert system.timers[UPGRADE_TIMER]
    await system.upgrades.apply(configuration(os_auto_upgrade_type="disable"))
    await system.restarted()
    await system.upgrades.apply(None)
    assert not system.timers[UPGRADE_TIMER]


async def test_an_unset_type_changes_nothing(system: System) -> None:
    before = system.tree()
    await system.upgrades.apply(configuration())
    assert (system.tree(), system.taken()) == (before, [])


async def test_an_unknown_distribution_is_reported(system: System) -> None:
    system.release = parse_os_release(samples.FEDORA)
    with pytest.raises(MachineError, match="cannot be configured on 'Fedora"):
        await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))


async def test_a_repository_that_cannot_be_upgraded_stays_in_the_report(system: System) -> None:
    system.policy += samples.POLICY_CUSTOM.partition("\n")[2]
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    await system.restarted()
    (problem,) = system.upgrades.problems
    assert "is not upgraded" in problem.message
    await system.upgrades.apply(configuration())
    assert system.upgrades.problems == ()


async def test_the_parts_keep_the_files_of_each_other(system: System) -> None:
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    await system.restarted()
    await system.journal.apply(configuration())  # before the other part has applied anything
    assert system.text(upgrades.ORIGINS_PATH) is not None
    await system.upgrades.apply(configuration())
    assert system.text(journald.PATH) is not None


async def test_a_damaged_record_does_not_keep_the_system_from_being_configured(system: System) -> None:
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    (system.layout.state / RECORD).write_text("{")
    await system.restarted()
    await system.upgrades.apply(configuration(os_auto_upgrade_type="all"))
    await system.upgrades.apply(None)
    assert system.text(upgrades.ORIGINS_PATH) is None
