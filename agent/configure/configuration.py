"""Follows the settings and configures the operating system; each part fails and is repeated by itself.

Nothing here can delay machine-server or an update: it has its own worker, and programs run in child processes.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import trio

from agent.configure.forwarding import Forwarder, Upload
from agent.configure.managed import ManagedUpgrades, Permission
from agent.configure.system_parts import JournalLimits, Part, UnattendedUpgrades, problem_of
from agent.control.report import Problem, SystemReport
from agent.control.settings import SettingsState
from agent.layout import Layout
from agent.system.apt import Apt
from agent.system.os_release import OsRelease, parse_os_release
from agent.system.programs import Programs, SystemPrograms
from agent.system.store import Store
from schema import MachineError
from schema.agent import Settings, SystemConfiguration
from support import ChangeSignal, Worker, doubled

SECTION: Final = "agent.system_configuration"
FIRST_RETRY: Final = 30.0
"""Seconds until the first repetition after a failure, doubled after each further one up to LONGEST_RETRY."""
LONGEST_RETRY: Final = 3600.0
OS_RELEASE: Final = Path("etc/os-release")

_log = structlog.get_logger("agent.system")


class SystemConfigurator:
    """Applies `agent.system_configuration`. `enabled`: systemd runs, and this process is root and not in --dev-mode."""

    def __init__(
        self,
        layout: Layout,
        settings: SettingsState,
        permission: Permission,
        upload: Upload,
        *,
        enabled: bool,
        root: Path = Path("/"),
        programs: Programs | None = None,
        worker: Worker | None = None,
    ) -> None:
        self._settings, self._enabled, self._root = settings, enabled, root
        self._worker = worker or Worker("system configuration")
        self._store = Store(layout, self._worker.run, root)
        programs = programs or SystemPrograms(layout.run / "apt.log", self._worker)
        apt = Apt(programs, self._worker.run, layout.run, root)
        self._managed = ManagedUpgrades(
            self._store, programs, apt, self._system, permission, self._worker.run, root=root
        )
        self._parts: Sequence[Part] = (
            JournalLimits(self._store, programs),
            UnattendedUpgrades(self._store, programs, apt, self._system),
            self._managed,
        )
        self._forwarder = Forwarder(layout.journal_queue, settings, self._forwarded, programs, self._worker, upload)
        self._failures: dict[Part, Problem] = {}
        self._changed = ChangeSignal()
        self._applied = ChangeSignal()

    async def run(self) -> None:
        """Apply the settings, and each change of them, until cancelled."""
        if not self._enabled:
            return
        async with self._opened(), trio.open_nursery() as nursery:
            await nursery.start(self._watch)
            for part in self._parts:
                nursery.start_soon(self._keep, part)
            nursery.start_soon(self._forward)

    def changes(self) -> AsyncGenerator[None, None]:
        """Yield now and after each attempt to apply settings. A slow reader misses intermediate ones."""
        return self._applied.values(lambda: None)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What keeps the system from being configured as the settings say."""
        if not self._enabled:
            return _NOT_CONFIGURED if _desired(self._settings.current) not in (None, SystemConfiguration()) else ()
        own = (problem for part in self._parts for problem in part.problems)
        return tuple(dict.fromkeys((*self._failures.values(), *own, *self._forwarder.problems)))

    def report(self) -> SystemReport:
        """Return what was done to the system."""
        managed = self._store.record.managed
        return SystemReport(self._store.files, managed.ended, managed.outcome, self._managed.waiting)

    def _forwarded(self) -> str:
        configuration = _desired(self._settings.current)
        return configuration.forward_system_logs if configuration is not None else ""

    async def _forward(self) -> None:
        while True:
            try:
                await self._forwarder.run()
            except Exception:  # a defect here must not stop supervision and updates
                _log.exception("forwarding of the journal has failed")
                await trio.sleep(LONGEST_RETRY)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        async with self._worker.opened():
            await self._store.load()
            yield

    async def _watch(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with aclosing(self._settings.changes()) as changes:
            await anext(changes)  # the settings of now, which the parts apply first
            task_status.started()
            async for _ in changes:
                self._changed.announce()

    async def _keep(self, part: Part) -> None:
        """Apply the settings to a part, again after each change of them and after each failure."""
        failures = 0
        while True:
            changed = self._changed.next
            try:
                pause = await part.apply(_desired(self._settings.current))
            except (MachineError, OSError) as error:
                failures += 1
                pause = doubled(FIRST_RETRY, LONGEST_RETRY, failures) * random.uniform(1.0, 1.1)
                self._note(part, problem_of(error, part.setting))
            except Exception as error:  # a defect here must not stop supervision and updates
                _log.exception("a part of the system configuration has failed", setting=part.setting)
                pause = LONGEST_RETRY
                self._note(part, Problem(part.setting, f"defect of machine-agent: {error!r}", "report it"))
            else:
                failures = 0
                self._failures.pop(part, None)
            self._applied.announce()
            with trio.move_on_after(math.inf if pause is None else pause):
                await changed.wait()
                failures = 0

    def _note(self, part: Part, problem: Problem) -> None:
        if self._failures.get(part) != problem:
            _log.error("the system cannot be configured", setting=problem.path, problem=problem.message,
                       remedy=problem.remedy)  # fmt: skip
        self._failures[part] = problem

    async def _system(self) -> OsRelease:
        read = partial((self._root / OS_RELEASE).read_text, errors="replace")
        try:
            return parse_os_release(await self._worker.run(read))
        except FileNotFoundError:
            return OsRelease()


def _desired(settings: Settings) -> SystemConfiguration | None:
    """Return the configuration to apply; None: the system is left alone, and what was changed is undone."""
    return None if settings.advanced_settings.disable_system_configuration else settings.system_configuration


_NOT_CONFIGURED: Final = (
    Problem(
        SECTION,
        "the operating system is not configured: machine-agent must run as root under systemd, without --dev-mode",
        "install it with `machine-agent --install`",
    ),
)
