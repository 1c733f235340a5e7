"""Follows the settings and configures the operating system; each part fails and is started again by itself.

Nothing here can delay machine-server or an update: it has its own worker, and programs run in child processes.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import trio

from agent.configure.forwarding import KILL_TIME, LAST_SAVE_LIMIT, Forwarder, Upload
from agent.configure.managed import ManagedUpgrades, UpgradePermission
from agent.configure.system_parts import JournalLimits, SystemPart, UnattendedUpgrades, problem_of
from agent.control.report import ProblemReport, SystemReport
from agent.control.settings import SettingsState
from agent.layout import Layout
from agent.parts import at_once, part
from agent.system.apt import Apt
from agent.system.os_release import OsRelease, parse_os_release
from agent.system.programs import Programs, SystemPrograms
from agent.system.store import SystemStore
from nursery_graph import Node, Restart
from schema import MachineError
from schema.agent import Settings, SystemConfiguration
from support import ChangeSignal, Worker, doubled

SECTION: Final = "agent.system_configuration"
FIRST_RETRY: Final = 30.0
"""Seconds until the first repetition after a failure, doubled after each further one up to LONGEST_RETRY."""
LONGEST_RETRY: Final = 3600.0
NAME: Final = "system configuration"
RESTART: Final = Restart(intensity=1_000_000, first_delay=FIRST_RETRY, max_delay=600.0)
"""After a defect. A failure of the system is repeated within a part, which continues at once with other settings."""
FORWARDING_STOP: Final = LAST_SAVE_LIMIT + KILL_TIME + 1.0
OS_RELEASE: Final = Path("etc/os-release")

_log = structlog.get_logger("agent.system")


class SystemConfigurator:
    """Applies `agent.system_configuration`. `enabled`: systemd runs, and this process is root and not in --dev-mode."""

    def __init__(
        self,
        layout: Layout,
        settings: SettingsState,
        permission: UpgradePermission,
        upload: Upload,
        *,
        enabled: bool,
        root: Path = Path("/"),
        programs: Programs | None = None,
        worker: Worker | None = None,
    ) -> None:
        self._settings, self._enabled, self._root = settings, enabled, root
        self._worker = worker or Worker("system configuration")
        self._store = SystemStore(layout, self._worker.run, root)
        programs = programs or SystemPrograms(layout.run / "apt.log", self._worker)
        apt = Apt(programs, self._worker.run, layout.run, root)
        self._managed = ManagedUpgrades(
            self._store, programs, apt, self._system, permission, self._worker.run, root=root
        )
        self._parts: Sequence[SystemPart] = (
            JournalLimits(self._store, programs),
            UnattendedUpgrades(self._store, programs, apt, self._system),
            self._managed,
        )
        self._forwarder = Forwarder(layout.journal_queue, settings, self._forwarded, programs, self._worker, upload)
        self._failures: dict[SystemPart, ProblemReport] = {}
        self._changed = ChangeSignal()
        self._applied = ChangeSignal()

    def nodes(self, *upload_requires: str) -> list[Node]:
        """Return the parts that apply the settings, and each change of them; none if this is not enabled.

        `upload_requires` are the parts that `upload` needs.
        """
        if not self._enabled:
            return []
        return [
            part(NAME, self._run),
            *(
                part(f"{NAME}: {each.name}", at_once(partial(self._keep, each)), requires={NAME}, restart=RESTART)
                for each in self._parts
            ),
            part(
                "journal forwarding", at_once(self._forwarder.run), requires={NAME, *upload_requires},
                stop_timeout=FORWARDING_STOP,
            ),
        ]  # fmt: skip

    def changes(self) -> AsyncGenerator[None, None]:
        """Yield now and after each attempt to apply settings. A slow reader misses intermediate ones."""
        return self._applied.values(lambda: None)

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
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

    async def _run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Notice changes of the settings, with the worker and the record that the other parts need."""
        async with self._worker.opened(), aclosing(self._settings.changes()) as changes:
            await self._store.load()
            await anext(changes)  # the settings of now, which the parts apply first
            task_status.started()
            async for _ in changes:
                self._changed.announce()

    async def _keep(self, part: SystemPart) -> None:
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
            else:
                failures = 0
                self._failures.pop(part, None)
            self._applied.announce()
            with trio.move_on_after(math.inf if pause is None else pause):
                await changed.wait()
                failures = 0

    def _note(self, part: SystemPart, problem: ProblemReport) -> None:
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
    ProblemReport(
        SECTION,
        "the operating system is not configured: machine-agent must run as root under systemd, without --dev-mode",
        "install it with `machine-agent --install`",
    ),
)
