"""machine-server as the agent runs it: with the settings applied, restarted when that is allowed, and reported."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import structlog
import trio

from agent.actions.permission import AgentMaintenance
from agent.control.report import ExitReport, ProblemReport, ProgramReport, WaitReport, program_report, waits
from agent.control.settings import SettingsState
from agent.layout import SERVER, Layout
from agent.leases.leases import Leases
from agent.parts import at_once, part
from agent.supervise.assembly import with_child, with_systemd
from agent.supervise.probe import restart_status
from agent.supervise.state import KILL_TIME, STOP_TIME
from agent.supervise.supervisor import Supervisor
from agent.supervise.systemd import SystemdBackend
from agent.supervise.units import files_of, server_environment
from agent.supervise.watchdog import Watchdog
from agent.update.record import UpdateRecord
from agent.update.steps import release_to_start
from nursery_graph import Node
from schema import MachineError
from schema.agent import AdvancedSettings
from support import ChangeSignal, DoublingDelay, Worker

WAIT_LIMIT: Final = 60.0  # seconds for the first answer of the cloud, with wait_for_update_check; reference value
INSTALL_LIMIT: Final = 900.0  # seconds for the update that it leads to: 100 MiB at 120 KiB/s take as long
RETRY: Final = 30.0  # seconds after which settings, or a start, that have failed are tried again
ASK_SOON: Final = 1.0  # seconds until the second request whether a restart is allowed, doubled up to ASK_AGAIN
ASK_AGAIN: Final = 60.0  # the sensor window is as coarse
ASK_LIMIT: Final = 10.0  # seconds for an answer
LONGEST_STEP: Final = 600.0  # seconds for applying settings; stopping machine-server takes at most 150
CHILD_LIMIT: Final = STOP_TIME + KILL_TIME  # seconds for the end of a child, when the agent stops
ADOPTION_LIMIT: Final = 2 * CHILD_LIMIT  # seconds until a process of an earlier agent is adopted, or has ended
LEASES, SUPERVISION, SERVER_SETTINGS, UPDATES = "leases", "supervision", "server settings", "updates"
"""Names of parts that others depend on."""

_log = structlog.get_logger("agent.server")


class ProgramUpdates(Protocol):
    """The updates of the programs: see `agent.updates`."""

    loaded: trio.Event
    """Set once the records are loaded."""

    def record(self, name: str) -> UpdateRecord | None:
        """Return the record of a program; None if it is not installed."""
        ...

    async def first_update(self, name: str) -> None:
        """Wait until the first answer of the cloud has led to the start of another release, or to none."""
        ...

    def waiting(self, name: str) -> tuple[WaitReport, ...]:
        """Return what the update of a program waits for."""
        ...

    def kept(self, name: str) -> str:
        """Return why another release of a program is not offered although nothing is wrong; or empty."""
        ...


class ManagedServer:
    """machine-server, started by systemd or as a child. Create it in a worker: it reads a file.

    `wait` delays the first start until the cloud was asked, as the setting wait_for_update_check does; `fast` starts
    at once even so.
    """

    def __init__(
        self,
        layout: Layout,
        credentials: Path,
        worker: Worker,
        *,
        systemd: bool,
        wait: bool = False,
        fast: bool = False,
    ) -> None:
        self._layout, self._worker = layout, worker
        self._wait, self._fast = wait, fast
        self._unit: SystemdBackend | None = None
        self.supervisor: Supervisor
        if systemd:
            self.supervisor, self._unit = with_systemd(layout, worker)
        else:
            self.supervisor = with_child(layout, credentials, worker)
        self.leases = Leases(layout.leases, self._run_blocking)
        self.maintenance = AgentMaintenance(self._refusal, self.leases, self._run_blocking)
        self._updates: ProgramUpdates | None = None
        self._problems: dict[str, ProblemReport] = {}  # by what has failed
        self._restart_begun = 0.0  # by Trio's clock, which is never set
        self._changed = ChangeSignal()  # the problems, or what a restart waits for
        self._restart_waits: tuple[WaitReport, ...] = ()

    def nodes(
        self, settings: SettingsState, asked: trio.Event, watchdog: Watchdog, updates: ProgramUpdates
    ) -> list[Node]:
        """Return the parts that start machine-server and keep it running with the settings.

        `asked` is set once the cloud has answered which versions it wants. `watchdog` watches the application of
        settings. `updates` are those of the part UPDATES, which needs these parts: it starts machine-server, too, and
        must not before the first settings are applied.
        """
        self._updates = updates
        return [
            part(LEASES, self.leases.run),
            part(SUPERVISION, self.supervisor.run, start_timeout=ADOPTION_LIMIT, stop_timeout=CHILD_LIMIT),
            part(
                SERVER_SETTINGS, partial(self._follow, settings, watchdog), requires={SUPERVISION},
                start_timeout=LONGEST_STEP,
            ),
            part(
                "server start", at_once(partial(self._start_first, settings, asked, updates)),
                requires={SUPERVISION, SERVER_SETTINGS}, uses={UPDATES},
            ),
            part("server restarts", at_once(self._restart_when_needed), requires={SUPERVISION, LEASES}),
        ]  # fmt: skip

    async def _start_first(self, settings: SettingsState, asked: trio.Event, updates: ProgramUpdates) -> None:
        """Start machine-server as soon as the settings allow it, then wait until cancelled.

        Without updates, which have failed then, it is started all the same.
        """
        if self._waits(settings.current.advanced_settings):
            _log.info("machine-server is started when the cloud was asked for versions, and a new one is installed")
            with trio.move_on_after(WAIT_LIMIT):  # at boot the network may come up some time after the agent
                await asked.wait()
            if asked.is_set() and updates.record(SERVER) is not None:
                with trio.move_on_after(INSTALL_LIMIT):
                    await updates.first_update(SERVER)
        if updates.loaded.is_set() and updates.record(SERVER) is None:
            remedy = "install it, or try it with `machine-agent --dev-mode`"
            self._note("start", ProblemReport(SERVER, f"{SERVER} is not installed", remedy))
        else:
            while not await self._done("start", self._start):  # noqa: ASYNC110 - a pause between attempts
                await trio.sleep(RETRY)
        await trio.sleep_forever()

    def report(self) -> ProgramReport:
        """Return what is known about machine-server."""
        state = self.supervisor.state()
        return program_report(
            self._record(),
            waiting_for=self._updates.waiting(SERVER) if self._updates is not None else (),
            kept=self._updates.kept(SERVER) if self._updates is not None else "",
            running=state.process is not None,
            since=time.time() - self.uptime if self.uptime is not None else 0.0,
            serving=state.answering,
            exits=[ExitReport(end.time, end.reason, end.ran) for end in state.exits],
            restart=WaitReport(state.restart_needed, self._restart_since()) if state.restart_needed else None,
            restart_waiting_for=self._restart_waits if state.restart_needed else (),
        )

    def _record(self) -> UpdateRecord | None:
        return self._updates.record(SERVER) if self._updates is not None else None

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
        """What keeps machine-server from running as it should."""
        return (*self._problems.values(), *self.maintenance.problems)

    def changes(self) -> AsyncGenerator[None, None]:
        """Yield now and after each change of `problems` or of what a restart waits for.

        A slow reader misses intermediate changes. Those of the process are reported by the supervisor.
        """
        return self._changed.values(lambda: None)

    @property
    def installed(self) -> str:
        """Version that is to run; empty if it is not installed."""
        record = self._record()
        return release_to_start(record).version if record is not None else ""

    @property
    def uptime(self) -> float | None:
        """Seconds since its start; None if it does not run."""
        process = self.supervisor.state().process
        return trio.current_time() - process.began if process is not None else None

    async def restart(self, *, reason: str) -> None:
        """Restart it now, whatever maintenance says: a person asked for it. Raises MachineError."""
        await self.supervisor.restart(reason=reason)

    async def _run_blocking(self, function: Callable[[], Any]) -> Any:
        return await self._worker.run(function)

    # ---- settings

    async def _follow(self, settings: SettingsState, watchdog: Watchdog, *, task_status: trio.TaskStatus[None]) -> None:
        """Apply the settings now and after each change. `started` after the first attempt."""
        attempted = False
        async with aclosing(settings.changes()) as changes:
            with watchdog.task("settings of machine-server", LONGEST_STEP) as progress:
                while True:
                    with progress.waiting():
                        await anext(changes)
                    applied = False
                    while not applied:
                        applied = await self._done("settings", partial(self._apply, settings))
                        if not attempted:
                            attempted = True
                            task_status.started()
                        if not applied:
                            with progress.waiting():
                                await trio.sleep(RETRY)

    async def _apply(self, settings: SettingsState) -> None:
        advanced = settings.current.advanced_settings
        self.maintenance.settings(advanced)
        if self._unit is not None:
            await self._unit.wait_at_boot(self._waits(advanced))
        await self.supervisor.configure(
            server_environment(self._layout, advanced.viam_server_env),
            disabled=advanced.disable_machine_server,
            start_timeout=advanced.machine_server_start_timeout,
        )

    def _waits(self, advanced: AdvancedSettings) -> bool:
        return (self._wait or advanced.wait_for_update_check) and not self._fast

    async def _start(self) -> None:
        if self._unit is not None:
            await self._unit.allow()
        await self.supervisor.start()

    async def _done(self, what: str, action: Callable[[], Awaitable[None]]) -> bool:
        """Carry out an action of the back end; return whether it succeeded. A failure is logged once, and reported."""
        try:
            await action()
        except MachineError as error:
            self._note(what, ProblemReport(SERVER, error.message, error.remedy))
            return False
        except OSError as error:
            self._note(what, ProblemReport(SERVER, str(error), f"check the disk below {self._layout.root}"))
            return False
        self._note(what, None)
        return True

    def _note(self, what: str, problem: ProblemReport | None) -> None:
        if self._problems.get(what) == problem:
            return
        if problem is None:
            del self._problems[what]
        else:
            _log.error(
                "machine-server cannot be controlled", failed=what, problem=problem.message, remedy=problem.remedy
            )
            self._problems[what] = problem
        self._notice()

    def _notice(self) -> None:
        self._changed.announce()

    # ---- restarts

    async def _restart_when_needed(self) -> None:
        """Restart machine-server for settings that apply at its start, when maintenance allows it."""
        async with aclosing(self.supervisor.changes()) as changes:
            async for state in changes:
                if state.restart_needed:
                    self._restart_begun, self._restart_waits = trio.current_time(), ()
                    await self._restart_when_allowed()

    async def _restart_when_allowed(self) -> None:
        pause = DoublingDelay(
            ASK_SOON, ASK_AGAIN
        )  # usually the server only has to complete the change of its configuration
        while (reason := self.supervisor.state().restart_needed) != "":
            change = self.maintenance.change()
            verdict = await self.maintenance.may_restart(SERVER, self._restart_since(), requested=False)
            _log.debug(
                "decided about a restart",
                allowed=verdict.allowed,
                restart=reason,
                reason="; ".join(verdict.reasons) or "maintenance allows it",
            )
            if verdict.allowed:
                if await self._done("restart", partial(self.supervisor.restart, reason=reason)):
                    return
            elif (waiting := waits(self._restart_waits, verdict.reasons, time.time())) != self._restart_waits:
                _log.info("a restart waits for maintenance", restart=reason, reason="; ".join(verdict.reasons))
                self._restart_waits = waiting
                self._notice()
            with trio.move_on_after(pause.next()):
                await change()

    def _restart_since(self) -> float:
        return time.time() - (trio.current_time() - self._restart_begun)

    async def _refusal(self) -> str | None:
        """Return why machine-server does not allow a restart. One that has not answered does nothing worth it."""
        state = self.supervisor.state()
        if state.process is None or not state.answering:
            return None
        status = None
        with trio.move_on_after(ASK_LIMIT):
            status = await restart_status(files_of(self._layout).address, state.process.pid, self._worker.run)
        if status is None:
            return "machine-server does not answer"
        return None if status.restart_allowed else status.reason or "machine-server does not allow it"
