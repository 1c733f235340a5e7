"""The owner of a device: windows, leases, a sensor and hooks, and what must be true of switches because of them.

What is allowed is computed here again, in a simpler way than in the agent.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio

from agent.actions.driver import ASK_AGAIN
from agent.actions.permission import AgentMaintenance
from agent.hooks.moments import LIMITS, HookedChange, HookMoment
from agent.layout import PROGRAMS, SERVER
from agent.leases.files import LeaseFiles
from agent.leases.leases import Leases
from agent.update import store
from agent.update.record import UpdateProgress, UpdateRecord, UpdateStep
from agent.update.steps import is_held
from schema.agent.records import AdvancedSettings, MaintenanceWindow
from tests.helpers.agent.device import Device, Life, PowerLoss

MINUTE = 60.0
HOUR = 3600.0
DAY = 24 * HOUR
SLACK = 2 * LIMITS[HookMoment.BEFORE_SWITCH] + 2 * ASK_AGAIN
"""Seconds by which a switch may be later than the longest deferral: a hook that hangs twice, and a question."""

ROUNDING = 0.001  # seconds since 1970 are no more exact


class OwnedDevice(Device):
    """A device whose owner restricts maintenance. Its rules are those of the agent; its time zone must be UTC."""

    def __init__(self, folder: Path, rng: random.Random, deferral: float, **options: Any) -> None:
        super().__init__(folder, rng, **options)
        self.deferral = deferral  # 0: without limit
        self.window: tuple[int, int] | None = None  # hours of each day, in UTC
        self.reason: str | None = None  # of the sensor
        self.leases: dict[str, float] = {}  # end by Trio's clock
        self.happened: Counter[str] = Counter()
        self.layout.leases.mkdir()
        self.watched = Leases(self.layout.leases, self._read, self.wall, trio.current_time)
        self.maintenance = AgentMaintenance(self._refuse, self.watched, self._read, self.wall)
        self.permission = self.maintenance
        self.hooks.during = self._hook
        self._written: dict[str, float] = {}  # files of leases: when, by the clock of the device
        self._accepted: dict[str, str] = {}  # version that the hook before the switch accepted last, by program
        self._agent_since = 0.0
        self._apply()

    # ---- what the owner does

    def set_window(self, window: tuple[int, int] | None) -> None:
        self.window = window
        self._apply()

    async def take(self, name: str, seconds: float) -> None:
        """Write the file of a lease, as a program does."""
        await self._write(name, f"{self.wall() + seconds}\n")
        self.leases[name] = trio.current_time() + min(seconds, DAY)

    async def spoil(self, name: str) -> None:
        """Write a file that is not a lease."""
        await self._write(name, "soon\n")
        self.leases.pop(name, None)

    def release(self, name: str) -> None:
        (self.layout.leases / name).unlink(missing_ok=True)
        self.leases.pop(name, None)
        self.watched.on_change()

    async def _write(self, name: str, text: str) -> None:
        (self.layout.leases / name).write_text(text)
        self._written[name] = self.wall()
        await self.watched._read()  # as inotify causes it
        self.watched.on_change()

    def _apply(self) -> None:
        windows = []
        if self.window is not None:
            start, end = self.window
            windows = [MaintenanceWindow(start=f"{start:02}:00", end=f"{end:02}:00")]
        settings = AdvancedSettings(maintenance_windows=tuple(windows), maintenance_longest_deferral=self.deferral)
        self.maintenance.settings(settings)

    # ---- what the agent sees

    async def _refuse(self) -> str | None:
        await trio.lowlevel.checkpoint()
        return self.reason if self.server.release is not None else None

    async def _read(self, function: Callable[[], Any]) -> Any:
        """Read files. The times of files are those of the kernel, so they are replaced by those of the device."""
        await trio.lowlevel.checkpoint()
        self._check_deferral()
        result = function()
        if isinstance(result, LeaseFiles):
            files = (file._replace(changed=self._written[file.name]) for file in result.files)
            return result._replace(files=tuple(files))
        return result

    async def _hook(self, moment: HookMoment, change: HookedChange) -> None:
        await trio.lowlevel.checkpoint()
        if moment is HookMoment.BEFORE_SWITCH:
            refuses = moment in self.hooks.refusals or moment in self.hooks.hangs
            self._accepted[change.program] = "" if refuses else change.version_to
            self.happened["hook refused" if refuses else "hook accepted"] += 1
            if self.rng.random() < 0.2:
                await trio.sleep(self.rng.uniform(1, LIMITS[moment]))
                await self.take("late", HOUR)
                self.happened["lease while the hook ran"] += 1
        if self.rng.random() < self.faults:
            self.happened["power fails while a hook runs"] += 1
            raise PowerLoss

    # ---- what must be true

    async def _agent(self, sha256: str, behavior: Any) -> None:
        self._agent_since = trio.current_time()
        await super()._agent(sha256, behavior)

    async def _blocking(self, function: Callable[[], Any], life: Life | None = None) -> Any:
        if isinstance(function, partial) and function.func is store.save:
            self._check_switch(function.args[1])
        return await super()._blocking(function, life)

    def _check_switch(self, record: UpdateRecord) -> None:
        """Raise AssertionError if a switch begins that is forbidden."""
        before = self.drivers[record.program].record
        if before is None or before.progress is None or record.progress is None:
            return
        if (before.progress.step, record.progress.step) != (UpdateStep.WAIT, UpdateStep.SWITCH):
            return
        program, target = record.program, record.progress.target
        if self._is_overdue(program, before.progress):
            self.happened["switch after the longest deferral"] += 1
            return
        assert self._accepted.get(program) == target.version, "a hook did not allow this switch"
        if self.drivers[program]._requested == target.sha256:
            self.happened["switch on request"] += 1
            return
        reasons = self._reasons(program)
        assert not reasons, f"a switch of {program} begins although {reasons}"
        self.happened["switch"] += 1

    def _reasons(self, program: str) -> list[str]:
        now = trio.current_time()
        reasons = [f"lease {name}" for name, end in self.leases.items() if end > now + ROUNDING]
        if self.window is not None:
            start, end = self.window
            if not (self.wall() / HOUR - start) % 24 < (end - start) % 24:
                reasons.append("no window is open")
        if program == SERVER and self.reason is not None and self.server.release is not None:
            reasons.append(self.reason)
        return reasons

    def _is_overdue(self, program: str, progress: UpdateProgress, slack: float = 0.0) -> bool:
        waited = self.drivers[program]._clock.now() - progress.began
        return self.deferral > 0 and waited >= self.deferral + slack

    def _check_deferral(self) -> None:
        """Raise AssertionError if an update waits longer than the longest deferral."""
        if trio.current_time() - self._agent_since < SLACK:
            return
        for program in PROGRAMS:
            driver = self.drivers.get(program)
            if driver is None or driver.record is None or (progress := driver.record.progress) is None:
                continue
            now = driver._clock.now()
            if progress.step is UpdateStep.WAIT and now - progress.since > SLACK and not is_held(driver.record, now):
                assert not self._is_overdue(program, progress, SLACK), "the longest deferral was exceeded"
                self.happened["waited"] += 1
