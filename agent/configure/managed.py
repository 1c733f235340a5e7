"""Upgrades of packages by the agent, and the reboots that they require, when maintenance allows them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import structlog

from agent.configure.system_parts import MANAGED
from agent.control.report import ProblemReport, WaitReport
from agent.layout import SERVER
from agent.maintenance.decide import MaintenanceVerdict
from agent.system.apt import Apt
from agent.system.os_release import OsRelease
from agent.system.programs import Programs, checked
from agent.system.store import SystemStore
from agent.system.upgrades import DISTRIBUTIONS, SETTING
from schema import ErrorKind, MachineError
from schema.agent import SystemConfiguration

ASK_AGAIN: Final = 300.0
"""Seconds after which a refused permission is asked for again: a maintenance sensor reports no changes."""
LONGEST_PAUSE: Final = 3600.0
"""Seconds after which the clock is read again, because it may have been set."""
REBOOT: Final = ("systemctl", "reboot")
REBOOT_REQUIRED: Final = Path("var/run/reboot-required")
"""File that packages write if their upgrade takes effect only after a reboot."""
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_log = structlog.get_logger("agent.system")


class UpgradePermission(Protocol):
    """Decides whether the machine may be disturbed now: see `agent.actions.permission.Maintenance`."""

    async def may_restart(self, program: str, waiting_since: float, requested: bool) -> MaintenanceVerdict:
        """Return whether a program may be stopped now."""
        ...


class ManagedUpgrades:
    """Upgrades every `os_managed_upgrade_interval_hours`. `now` returns seconds since 1970, `boot` the id of the boot.

    An upgrade may restart services and even the machine, so the rules for restarts of machine-server apply to it.
    """

    name = "upgrades"
    setting = SETTING

    def __init__(
        self,
        store: SystemStore,
        programs: Programs,
        apt: Apt,
        system: Callable[[], Awaitable[OsRelease]],
        permission: UpgradePermission,
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
        *,
        root: Path = Path("/"),
        now: Callable[[], float] = time.time,
        boot: Callable[[], str] = BOOT_ID.read_text,
    ) -> None:
        self.waiting: WaitReport | None = None
        """What an upgrade or a reboot waits for."""
        self.problems: tuple[ProblemReport, ...] = ()
        self._store, self._programs, self._apt, self._system = store, programs, apt, system
        self._permission, self._run, self._now, self._boot = permission, run, now, boot
        self._required = root / REBOOT_REQUIRED

    async def apply(self, configuration: SystemConfiguration | None) -> float | None:
        """Bring the system into the state of the settings; None: undo everything."""
        self.waiting, self.problems = None, ()
        if configuration is None or configuration.os_auto_upgrade_type not in MANAGED:
            await self._remember(since=0.0, reboot_since=0.0)
            return None
        system = await self._system()
        if system.id not in DISTRIBUTIONS:
            raise MachineError(
                f"machine-agent cannot upgrade packages on {system.name or system.id or 'this system'!r}",
                kind=ErrorKind.UNSUPPORTED,
                remedy="use Debian, Raspberry Pi OS or Ubuntu, or leave os_auto_upgrade_type empty",
            )
        reboot = await self._reboot_if_required()  # first, so that an upgrade that fails does not delay it
        interval = configuration.os_managed_upgrade_interval
        pause = _until(self._now(), self._store.record.managed.succeeded, interval)
        if pause <= 0:
            security = configuration.os_auto_upgrade_type == "managed-security"
            refused = await self._when_allowed("since", "an upgrade of packages", partial(self._upgrade, security))
            pause = interval if refused is None else refused
            if refused is None:
                reboot = await self._reboot_if_required()
        return min(pause, LONGEST_PAUSE if reboot is None else reboot, LONGEST_PAUSE)

    async def _when_allowed(self, field: str, name: str, action: Callable[[], Awaitable[None]]) -> float | None:
        """Carry out an action if maintenance allows it; otherwise return the seconds after which to ask again.

        `field` of the record is the time since which it waits, so that a reboot does not begin the waiting again.
        """
        since = getattr(self._store.record.managed, field) or self._now()
        await self._remember(**{field: since})
        verdict = await self._permission.may_restart(SERVER, since, requested=False)
        if not verdict.allowed:
            if self.waiting is None:
                self.waiting = WaitReport(f"{name}: {verdict.reason}", since)
            _log.debug("maintenance is not allowed", action=name, reason=verdict.reason)
            return ASK_AGAIN if verdict.until is None else min(max(verdict.until - self._now(), 1.0), ASK_AGAIN)
        await action()
        return None

    async def _upgrade(self, security: bool) -> None:
        _log.info("packages are upgraded", security_only=security)
        try:
            count = await self._apt.upgrade(security=security)
        except MachineError as error:
            await self._remember(ended=self._now(), outcome=f"failed: {error.message}")
            raise
        outcome = f"{count} packages upgraded" if count != 1 else "1 package upgraded"
        await self._remember(since=0.0, ended=self._now(), succeeded=self._now(), outcome=outcome)
        _log.info("packages were upgraded", count=count, security_only=security)

    async def _reboot_if_required(self) -> float | None:
        """Reboot if the system requires it and maintenance allows it; otherwise return when to ask again."""
        written: int = await self._run(partial(_modified, self._required))
        record = self._store.record.managed
        if not written:
            await self._remember(reboot_since=0.0)
            return None
        boot = (await self._run(self._boot)).strip()
        if written == record.reboot_file and boot != record.reboot_boot:
            # It must not reboot again and again: usually the file is in memory, and a reboot removes it.
            self.problems = (
                ProblemReport(
                    SETTING,
                    f"/{REBOOT_REQUIRED} still exists after the machine was rebooted for it",
                    "remove the file; it should be in a file system in memory",
                ),
            )
            return None
        return await self._when_allowed(
            "reboot_since", "a reboot for upgraded packages", partial(self._reboot, written, boot)
        )

    async def _reboot(self, written: int, boot: str) -> None:
        await self._remember(reboot_since=0.0, reboot_file=written, reboot_boot=boot)
        _log.warning("the machine is rebooted, because upgraded packages require it")
        checked(REBOOT, await self._programs.run(REBOOT), "reboot the machine")

    async def _remember(self, **changes: Any) -> None:
        await self._store.update(managed=msgspec.structs.replace(self._store.record.managed, **changes))


def _until(now: float, last: float, interval: float) -> float:
    """Return the seconds until the next run. A last run in the far future was made with a wrong clock, and is void."""
    return 0.0 if not last or last - now > interval else last + interval - now


def _modified(path: Path) -> int:
    """Return the time of modification in nanoseconds, 0 if the file does not exist."""
    try:
        return path.stat().st_mtime_ns or 1
    except FileNotFoundError:
        return 0
