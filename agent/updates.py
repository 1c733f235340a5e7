"""The updates of both programs, put together: where releases come from, a driver for each, and what is offered."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

import structlog
import trio

from agent.actions.catalog import ReleaseCatalog
from agent.actions.clock import Clock
from agent.actions.driver import Driver
from agent.actions.offers import ReleaseOffers, not_updated
from agent.actions.own import OwnProgram
from agent.actions.program import RestartPermission, UpdatedProgram
from agent.actions.server import ServerProgram
from agent.actions.steps import Actions
from agent.control.fetch import Fetched
from agent.control.report import ProblemReport, WaitReport, problems_of
from agent.hooks.run import HookRunner
from agent.launch.links import install_launcher
from agent.layout import AGENT, SERVER, Layout
from agent.parts import part
from agent.releases.transport import Transport
from agent.releases.trust import Trust
from agent.releases.verifier import in_process
from agent.releases.web import Web
from agent.server import LEASES, SERVER_SETTINGS, SUPERVISION, UPDATES
from agent.supervise.supervisor import Supervisor
from agent.update.record import UpdateRecord, UpdateStep
from agent.update.steps import release_to_start
from agent.update.table import PREPARING
from nursery_graph import Node
from schema import MachineError
from schema.agent import VersionControl
from support import Worker
from uplink import CloudAddress, platform

RELEASE: Final = "MACHINE_RELEASE"
"""Variable in which the launcher names the release that it has started."""
SPEED: Final = "MACHINE_AGENT_CLOCK_SPEED"
"""Variable that lets the times of updates pass faster, for tests. In a service, only root can set it."""
_STARTED: Final = frozenset({UpdateStep.TRIAL, UpdateStep.ROLL_BACK, UpdateStep.RECOVER})
"""Steps in which the update decides which release is started."""

_log = structlog.get_logger("agent.update")


class Updates:
    """Updates machine-server and, if `end` is given, the agent itself, which `end` ends to be started again.

    `worker` runs short calls, and must be open; downloads have a worker of their own. `offline` says why the machine is
    offline, or is empty. `refresh` blocks, and brings the installed files to the state of this release.
    """

    def __init__(
        self,
        layout: Layout,
        address: CloudAddress,
        supervisor: Supervisor,
        permission: RestartPermission,
        worker: Worker,
        *,
        offline: Callable[[], str],
        end: Callable[[], None] | None = None,
        refresh: Callable[[], object] = lambda: None,
        speed: float = 1.0,
    ) -> None:
        self._files = Worker("releases")
        self._layout, self._worker, self._refresh = layout, worker, refresh
        web = Web(address, worker)
        trust = Trust(layout.trust, self._files, in_process)
        releases = self._releases = ReleaseCatalog(
            trust, Transport(web, address.part), web, self._files, layout.downloads
        )
        self._hooks = HookRunner(layout.hooks, worker.run)
        programs: dict[str, UpdatedProgram] = {SERVER: ServerProgram(layout, supervisor, worker.run, offline)}
        if end is not None:
            programs[AGENT] = OwnProgram(os.environ.get(RELEASE, ""), offline, end)
        self.drivers: Mapping[str, Driver] = {
            name: Driver(
                name,
                layout,
                program,
                Actions(layout, program, releases, self._files.run, platform=platform(), unpack=_unpack),
                permission,
                self._hooks,
                worker.run,
                clock=Clock(speed=speed),
            )
            for name, program in programs.items()
        }
        self.loaded = trio.Event()
        """Set once the records of the programs are loaded."""
        self.offers = ReleaseOffers(
            self.drivers,
            releases,
            layout.state / "chosen-versions.json",
            worker.run,
            part=address.part,
            platform=platform(),
        )

    def node(self) -> Node:
        """Return the part. Its start has no limit: while a disk is full, it waits there for space."""
        return part(
            UPDATES, self.run, requires={LEASES, SUPERVISION, SERVER_SETTINGS}, start_timeout=math.inf
        )  # fmt: skip

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Continue updates that were interrupted, and carry out new ones, until cancelled.

        `started` once the records are loaded and `release_to_start` is known.
        """
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._files.opened())
            nursery = await stack.enter_async_context(trio.open_nursery())
            await nursery.start(self._hooks.run)
            await self.offers.load()
            for driver in self.drivers.values():
                await nursery.start(driver.run)
            nursery.start_soon(self.offers.run)
            if AGENT in self.drivers:
                nursery.start_soon(self._renew_installation)
            self.loaded.set()
            task_status.started()

    async def first_update(self, name: str) -> None:
        """Wait until the first answer of the cloud has led to the start of another release, or to none.

        Returns also when the update waits for maintenance, or pauses after a failure.
        """
        driver = self.drivers[name]
        await self.offers.considered(name)
        async with aclosing(driver.changes()) as changes:
            async for record in changes:
                progress = record.progress if record is not None else None
                if progress is None or progress.pausing or progress.step in _STARTED:
                    return
                if progress.step is UpdateStep.WAIT and driver.waiting:
                    return

    def driver(self, name: str) -> Driver:
        """Return the driver of a program. PRECONDITION if this agent does not update it."""
        if name not in self.drivers:
            raise not_updated(name)
        return self.drivers[name]

    def record(self, name: str) -> UpdateRecord | None:
        """Return the record of a program; None if it is not installed, or not updated by this agent."""
        driver = self.drivers.get(name)
        return driver.record if driver is not None else None

    def installed(self, name: str) -> str:
        """Return the version of a program that is to run; empty if it is not installed."""
        record = self.record(name)
        return release_to_start(record).version if record is not None else ""

    def is_switching(self, name: str) -> bool:
        """Return whether an update has gone so far that holding off maintenance cannot stop it."""
        record = self.record(name)
        progress = record.progress if record is not None else None
        return progress is not None and progress.step not in (*PREPARING, UpdateStep.WAIT)

    def waiting(self, name: str) -> tuple[WaitReport, ...]:
        """Return what the update of a program waits for."""
        driver = self.drivers.get(name)
        return driver.waiting if driver is not None else ()

    def kept(self, name: str) -> str:
        """Return why another release of a program is not offered although nothing is wrong; or empty."""
        return self.offers.kept.get(name, "")

    def settings(self, versions: VersionControl, *, allow_http: bool, trust_first_root: bool) -> None:
        """Take `version_control` of the settings, and the consents of the device."""
        self._releases.trust_first_root = trust_first_root
        self.offers.settings({AGENT: versions.agent, SERVER: versions.machine_server}, allow_http=allow_http)

    def answered(self, fetched: Fetched) -> None:
        """Take an answer of the cloud."""
        self.offers.answered({AGENT: fetched.agent, SERVER: fetched.server}, fetched.problems)

    def changes(self) -> Iterator[AsyncGenerator[object, None]]:
        """Return generators that yield after each change of records, of what updates wait for, and of `problems`."""
        yield from (driver.changes() for driver in self.drivers.values())
        yield self.offers.changes()

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
        """What keeps programs from being updated."""
        stuck = [ProblemReport(name, driver.problem) for name, driver in self.drivers.items() if driver.problem]
        return (
            *stuck,
            *problems_of((*self.offers.version_problems, *self.offers.problems.values(), *self._hooks.problems)),
        )

    async def _renew_installation(self) -> None:
        """Install launcher and units of this release once no update of the agent is in progress.

        A release on trial must not: nothing could undo it.
        """
        async for record in self.drivers[AGENT].changes():
            if record is not None and record.progress is None:
                await self._worker.run(lambda: install_launcher(self._layout))
                try:
                    await self._worker.run(self._refresh)
                except (MachineError, OSError) as error:
                    _log.warning("the installed files cannot be brought up to date", reason=str(error))
                return


def _unpack(file: Path, folder: Path) -> None:
    """Unpack a release file into a new folder, which exists complete and flushed to the disk, or not at all.

    The module is imported only when a release is unpacked: it needs large modules.
    """
    from agent.releases.unpack import unpack

    unpack(file, folder)
