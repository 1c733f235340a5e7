"""The parts of the system configuration that write files: the size of the journal, and unattended upgrades."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog

from agent.control.report import ProblemReport
from agent.system import journald
from agent.system.apt import Apt
from agent.system.managed_files import FilePlan, sha256
from agent.system.os_release import OsRelease
from agent.system.programs import Programs, checked
from agent.system.state import FLUSH_JOURNAL, RESTART_JOURNALD, switch_timer
from agent.system.store import JOURNAL, UPGRADES, SystemStore
from agent.system.upgrades import SETTING, UpgradePlan, UpgradeType, plan_upgrades
from schema import ConfigError, MachineError
from schema.agent import SystemConfiguration

JOURNAL_SETTING: Final = "agent.system_configuration.logging_journald_system_max_use_megabytes"
MANAGED: Final = ("managed-all", "managed-security")
"""Types of upgrades that the agent carries out itself."""
_ON_DISK: Final = ("persistent", "auto")
_log = structlog.get_logger("agent.system")


class SystemPart(Protocol):
    """A part of the system configuration."""

    name: str
    """Name of the part, for people."""
    setting: str
    """Path of the setting that its failures are about."""

    async def apply(self, configuration: SystemConfiguration | None) -> float | None:
        """Bring the system into the state of the settings; None: undo everything.

        Returns seconds until it must be called again even if no setting changes, or None. Raises MachineError or
        OSError; then it is called again.
        """
        ...

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
        """What is wrong although `apply` has succeeded."""
        ...


class JournalLimits:
    """The drop-in file of journald, which is restarted only if the text that it runs with has changed."""

    name = "journal"
    setting = JOURNAL_SETTING
    problems: tuple[ProblemReport, ...] = ()

    def __init__(self, store: SystemStore, programs: Programs) -> None:
        self._store, self._programs = store, programs

    async def apply(self, configuration: SystemConfiguration | None) -> None:
        """Bring the system into the state of the settings; None: undo everything."""
        text, storage = None, ""
        if configuration is not None:
            storage = configuration.logging_journald_storage
            text = journald.journald_text(
                configuration.logging_journald_system_max_use_megabytes,
                configuration.logging_journald_runtime_max_use_megabytes,
                storage,
            )
        plan = await self._store.set_files(JOURNAL, {} if text is None else {journald.PATH: text})
        if journald.PATH in plan.problems:
            raise plan.problems[journald.PATH]
        running = "" if text is None else sha256(text)
        if running == self._store.record.journald:
            return
        checked(RESTART_JOURNALD, await self._programs.run(RESTART_JOURNALD))
        if not text or storage in _ON_DISK:
            checked(FLUSH_JOURNAL, await self._programs.run(FLUSH_JOURNAL))
        await self._store.update(journald=running)
        _log.info("journald was restarted with other limits", file=journald.PATH if text else "none")


class UnattendedUpgrades:
    """The drop-in files of apt, its timers, and the package unattended-upgrades."""

    name = "unattended upgrades"
    setting = SETTING

    def __init__(
        self, store: SystemStore, programs: Programs, apt: Apt, system: Callable[[], Awaitable[OsRelease]]
    ) -> None:
        self._store, self._programs, self._apt, self._system = store, programs, apt, system

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
        """What is wrong although `apply` has succeeded. Repositories that are not upgraded."""
        return tuple(ProblemReport(*words) for words in self._store.record.upgrade_problems)

    async def apply(self, configuration: SystemConfiguration | None) -> None:
        """Bring the system into the state of the settings; None: undo everything.

        The repositories are read when upgrades are enabled, not at each start.
        """
        kind: UpgradeType = ""
        if configuration is not None:
            chosen = configuration.os_auto_upgrade_type
            # Upgrades by the agent wait for maintenance, which unattended-upgrades would not.
            kind = "disable" if chosen == "managed-all" or chosen == "managed-security" else chosen  # as MANAGED
        if kind == "":
            await self._undo()
            return
        system = await self._system()
        key = f"{kind} {system.id} {system.codename or system.version}"
        if key == self._store.record.upgrades:
            _raise(await self._store.set_files(UPGRADES, self._store.record.upgrade_files))
            return
        plan = await self._plan(kind, system)
        problems = tuple((error.path, error.reason, error.remedy) for error in plan.problems)
        await self._store.update(upgrades="", upgrade_files=dict(plan.files), upgrade_problems=problems)
        files = await self._store.set_files(UPGRADES, plan.files)
        for package in plan.packages:
            if not await self._apt.is_installed(package):
                await self._apt.install(package)
                _log.info("a package was installed", package=package)
        for timer, enabled in plan.timers.items():
            await self._switch(timer, enabled)
        _raise(files)
        await self._store.update(upgrades=key)
        _log.info("upgrades of packages were configured", type=kind)

    async def _plan(self, kind: UpgradeType, system: OsRelease) -> UpgradePlan:
        """Return the plan. Fetches the lists of packages if something is missing that needs them."""
        policy = await self._apt.policy() if kind in ("all", "security") else ""
        plan = plan_upgrades(kind, system, policy)
        missing = [package for package in plan.packages if not await self._apt.is_installed(package)]
        if missing or (policy and not plan.files):
            await self._apt.update()
            plan = plan_upgrades(kind, system, await self._apt.policy())
        if not plan.files:
            raise plan.problems[0]
        return plan

    async def _undo(self) -> None:
        record = self._store.record
        plan = await self._store.set_files(UPGRADES, {})
        for timer, enabled in record.timers.items():
            command = switch_timer(timer, enabled)
            checked(command, await self._programs.run(command), f"run `{' '.join(command)}`")
        await self._store.update(upgrades="", upgrade_files={}, upgrade_problems=(), timers={})
        _raise(plan)

    async def _switch(self, timer: str, enabled: bool) -> None:
        """Enable or disable a timer, after its former state was stored."""
        was = (await self._programs.run(("systemctl", "is-enabled", timer))).output.startswith("enabled")
        if was == enabled:
            return
        await self._store.update(timers={timer: was, **self._store.record.timers})
        command = switch_timer(timer, enabled)
        checked(command, await self._programs.run(command), f"run `{' '.join(command)}`, or `systemctl unmask {timer}`")


def problem_of(error: MachineError | OSError, setting: str) -> ProblemReport:
    """Return a failure for the report."""
    if isinstance(error, ConfigError):
        return ProblemReport(error.path, error.reason, error.remedy)
    if isinstance(error, MachineError):
        return ProblemReport(setting, error.message, error.remedy)
    return ProblemReport(setting, str(error), "check the disk of the machine")


def _raise(plan: FilePlan) -> None:
    for error in plan.problems.values():
        raise error
