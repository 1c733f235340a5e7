"""A device in virtual time: a disk in a real folder, a service manager, the launcher, releases that behave badly.

The drivers, the actions, the records and the links are the real ones. The launcher is a model of the shell script.
"""

from __future__ import annotations

import errno
import random
import sys
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from agent.actions import disk
from agent.actions.clock import Clock
from agent.actions.driver import Driver
from agent.actions.own import OwnProgram
from agent.actions.program import ProgramFacts, RestartPermission, UpdatedProgram
from agent.actions.steps import Actions
from agent.hooks.moments import LIMITS, HookAnswer, HookedChange, HookMoment, too_slow
from agent.launch import links, machine_launch
from agent.layout import AGENT, PROGRAMS, SERVER, Layout
from agent.maintenance.decide import MaintenanceVerdict
from agent.supervise.health import crashes_in_a_row, restart_delay
from agent.update import store
from agent.update.record import Release, ReleaseOffer, ReleaseSlots, UpdateRecord, UpdateStep
from schema.errors import MachineError
from support.files.durable import is_link, read_link, replace_link
from tests.helpers.agent.cloud import PLATFORM, START_TIMEOUT, Behavior, Cloud, CloudSource, unpack
from tests.helpers.agent.invariants import Invariants, Run

EPOCH = 1_790_000_000.0
MOST_STEPS = 10_000  # of the agent's tasks at one moment
MOST_STARTS = 60  # of machine-server within an hour without a reboot
WATCHDOG = 120.0  # of the agent


_READING = (store.load, links.read, disk.rebuild)


class PowerLoss(BaseException):
    """The device loses its power, or the agent is killed."""


class Life:
    """One process of the agent. After `kill` nothing that it does has an effect; after `end` its clean-up still has."""

    def __init__(self, after_step: Callable[[Life], None]) -> None:
        self.steps = 0  # of its tasks, each from one await to the next
        self.dead = self.busy = False
        self._counted_at = -1.0
        self.scope = trio.CancelScope()
        self._after_step = after_step

    def step(self) -> None:
        self.steps += 1
        if self.steps % MOST_STEPS == 0:
            now = trio.current_time()
            if now == self._counted_at:
                self.busy = True
                self.kill()
            self._counted_at = now
        if not self.scope.cancel_called:
            self._after_step(self)

    def end(self) -> None:
        """End it as a signal or an error in a task does."""
        self.scope.cancel()

    def kill(self) -> None:
        """End it as SIGKILL does."""
        self.dead = True
        self.scope.cancel()

    def act(self) -> None:
        """Raise PowerLoss if this process has been killed. Called before each effect."""
        if self.dead:
            raise PowerLoss


_LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


class Steps(trio.abc.Instrument):
    """Reports to each process when one of its tasks has reached an await."""

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        life = task.context.get(_LIFE)
        if life is not None:
            life.step()


def launch(layout: Layout, program: str, *, full: bool = False) -> str | None:
    """Return the hash of the release that the launcher starts, and count its start: a model of machine-launch.

    `full`: the disk is, so that nothing can be counted. On Windows it is the real launcher, which is no script.
    """
    if sys.platform == "win32" and not full:
        return next((start.folder.name for start in machine_launch.starts(layout.root, program)), None)
    folder = layout.launch(program)
    trial = folder / "trial"
    for name in ("run", "back", "factory"):
        link = layout.releases(program) / name if name == "factory" else folder / name
        if not is_link(link):
            continue
        release = (link.parent / read_link(link)).resolve()
        if not (release / "run").is_file():
            continue
        if name == "run" and trial.exists():
            starts = trial.read_text().strip()
            if starts not in ("0", "1", "2") or full:
                continue
            trial.write_text(f"{int(starts) + 1}\n")
        elif name != "run" and trial.exists() and not full:
            trial.write_text("4\n")
        return release.name
    return None


class Open:
    """Implements RestartPermission: maintenance is always allowed, or never while `reason` is set."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    async def may_restart(self, program: str, waiting_since: float, requested: bool) -> MaintenanceVerdict:
        return MaintenanceVerdict(not self.reason or requested, self.reason, waiting_since, None)

    def change(self) -> Callable[[], Awaitable[None]]:
        return trio.sleep_forever


class OwnersHooks:
    """Implements Hooks: those in `refusals` refuse with this reason, those in `hangs` hang. `ran` lists their runs."""

    def __init__(self) -> None:
        self.refusals: dict[HookMoment, str] = {}
        self.hangs: set[HookMoment] = set()
        self.ran: list[tuple[HookMoment, HookedChange, str]] = []
        self.during: Callable[[HookMoment, HookedChange], Awaitable[None]] | None = None
        self.revision = 0
        self._changed = trio.Event()

    async def before(self, moment: HookMoment, change: HookedChange) -> HookAnswer:
        self.ran.append((moment, change, ""))
        if self.during is not None:
            await self.during(moment, change)
        if moment in self.hangs:
            await trio.sleep(LIMITS[moment])
            return HookAnswer(True, too_slow(moment))
        return HookAnswer(True, self.refusals.get(moment, ""))

    def after(self, moment: HookMoment, change: HookedChange, result: str = "", reason: str = "") -> None:
        self.ran.append((moment, change, result))

    def changed(self) -> Callable[[], Awaitable[None]]:
        return self._changed.wait

    def edit(self) -> None:
        """Report a change of the files."""
        self.revision += 1
        changed, self._changed = self._changed, trio.Event()
        changed.set()


class SystemdServer:
    """machine-server below a service manager, which restarts it. Implements UpdatedProgram.

    It runs on without the agent. The pauses are those that the agent sets. Without an agent they would not become
    longer, which is easier to survive.
    """

    def __init__(self, layout: Layout, cloud: Cloud, is_full: Callable[[], bool]) -> None:
        self._layout, self._cloud, self._is_full = layout, cloud, is_full
        self._may_run = trio.Event()
        self._may_run.set()
        self._scope = trio.CancelScope()
        self._stopped = trio.Event()
        self._changed = trio.Event()
        self._crashed = trio.Event()
        self.release: str | None = None
        self.since = 0.0
        self.configured = False  # it has fetched its configuration since its start
        self.start_timeout = START_TIMEOUT
        self.starts: list[str] = []
        self.ended: Callable[[Run], None] = lambda run: None
        self._started: deque[float] = deque(maxlen=MOST_STARTS)  # when, since the last reboot

    async def run(self) -> None:
        """Run it as the service manager does, until cancelled."""
        failures = 0
        while True:
            await self._may_run.wait()
            begun, self._crashed = trio.current_time(), trio.Event()
            with trio.CancelScope() as self._scope:
                await self._process()
            self._notice(None)
            if self._scope.cancelled_caught:
                self._stopped.set()
                failures = 0
                continue
            failures = crashes_in_a_row(failures, trio.current_time() - begun)
            with trio.CancelScope() as self._scope:
                await trio.sleep(restart_delay(failures))
            if self._scope.cancelled_caught:
                self._stopped.set()

    async def _process(self) -> None:
        sha256 = launch(self._layout, SERVER, full=self._is_full())
        assert sha256 is not None, "there is nothing to start"
        self.starts.append(sha256)
        now = trio.current_time()
        busy = len(self._started) == MOST_STARTS and now - self._started[0] < 3600
        assert not busy, f"machine-server was started {MOST_STARTS} times within an hour"
        self._started.append(now)
        self._notice(sha256)
        behavior = self._cloud.behavior(sha256)
        late = behavior.serves_after is None or behavior.serves_after >= self.start_timeout
        limit = self.start_timeout if late else float("inf")
        with trio.move_on_after(min(limit, behavior.crashes_after or float("inf"))):
            if behavior.serves_after is not None:
                await trio.sleep(behavior.serves_after)
                self._notice(sha256)
            await self._crashed.wait()

    def process(self) -> Run | None:
        """Return the process that runs."""
        return None if self.release is None else Run(self.release, self.since, trio.current_time(), self.configured)

    def crash(self) -> None:
        """End the process as an error in it does; the service manager starts it again."""
        self._crashed.set()

    def _notice(self, release: str | None) -> None:
        if release != self.release:
            if (process := self.process()) is not None:
                self.ended(process)
            self.since, self.configured = trio.current_time(), False
        self.release = release
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def enable(self) -> None:
        """Start it unless it runs."""
        self._may_run.set()

    def reboot(self) -> None:
        """Start it again with the computer, also if it was stopped."""
        self._started.clear()
        self.enable()
        self._scope.cancel()

    async def stop(self, reason: str) -> None:
        if self._may_run.is_set():
            self._may_run = trio.Event()
        self._stopped = trio.Event()
        self._scope.cancel()
        if self.release is not None:
            await self._stopped.wait()

    async def start(self, sha256: str) -> None:
        if self.release not in (None, sha256):
            await self.stop("another release is linked")
        self._may_run.set()

    async def facts(self) -> ProgramFacts:
        await trio.lowlevel.checkpoint()
        if self.release is None:
            return ProgramFacts(offline=self._offline())
        behavior, up = self._cloud.behavior(self.release), trio.current_time() - self.since
        served = behavior.serves_after is not None and up >= behavior.serves_after
        self.configured |= up > 1 and behavior.configured and self._cloud.reachable  # it may do so before it serves
        return ProgramFacts(self.release, up, served, self.configured, self._offline())

    def _offline(self) -> str:
        return "" if self._cloud.reachable else "unreachable"

    async def change(self) -> None:
        await self._changed.wait()

    def obstacle(self) -> str:
        return ""


@dataclass
class Reached:
    """machine-server as one process of the agent reaches it. Implements UpdatedProgram."""

    server: SystemdServer
    life: Life

    async def stop(self, reason: str) -> None:
        self.life.act()
        await self.server.stop(reason)

    async def start(self, sha256: str) -> None:
        self.life.act()
        await self.server.start(sha256)

    async def facts(self) -> ProgramFacts:
        return await self.server.facts()

    async def change(self) -> None:
        await self.server.change()

    def obstacle(self) -> str:
        return ""


@dataclass
class _Permission:
    """What the device permits at the moment. Implements RestartPermission."""

    device: Device

    async def may_restart(self, program: str, waiting_since: float, requested: bool) -> MaintenanceVerdict:
        return await self.device.permission.may_restart(program, waiting_since, requested)

    def change(self) -> Callable[[], Awaitable[None]]:
        return self.device.permission.change()


class Device:
    """One device with both programs.

    `faults` is the probability of a power loss before and after each blocking call, `crashes` that of an end of the
    agent at each await while an update is in progress. Both need `Steps` as an instrument of the run.
    """

    def __init__(
        self, folder: Path, rng: random.Random, *, faults: float = 0.0, disk_full: float = 0.0, crashes: float = 0.0
    ) -> None:
        self.layout = Layout(folder / "opt", folder / "run")
        for path in self.layout.folders:
            path.mkdir(parents=True, exist_ok=True)
        self.cloud, self.rng = Cloud(), rng
        self.faults, self.disk_full, self.crashes = faults, disk_full, crashes
        self.occurred: Counter[str] = Counter()  # faults by name
        self.life = Life(self.after_step)
        self.step: UpdateStep | None = None  # of the record that was stored last
        self._stored = trio.Event()
        self.filled = self.freed = False  # by a release, and by the agent after that
        self.server = SystemdServer(self.layout, self.cloud, self._full)
        self.permission: RestartPermission = Open()
        self.hooks = OwnersHooks()
        self.offered: dict[str, ReleaseOffer] = {}
        self.drivers: dict[str, Driver] = {}
        self.agents: list[str] = []  # releases of the agent that were started
        self.wall_offset = 0.0
        self.offered_every = 600.0  # seconds
        self.cuts: dict[UpdateStep | None, float] = {}  # further probabilities of a power loss once a step was stored
        self.clock_is_lost = False  # with the power, sometimes: it has no battery
        self.invariants = Invariants(self)
        self.server.ended = partial(self.invariants.ran, SERVER)
        self._agent_runs: Run | None = None

    def install(self, program: str, version: str = "1.0.0") -> Release:
        """Install a release as the installation does."""
        release = self.cloud.publish(program, version)
        file = self.layout.downloads / "installation"
        file.write_bytes(self.cloud.published[release.sha256].genuine)
        unpack(file, self.layout.release(program, release.sha256))
        file.unlink()
        folder = self.layout.release(program, release.sha256)
        (folder / disk.DESCRIPTION).write_bytes(msgspec.json.encode(release))
        store.save(self.layout.record(program), UpdateRecord(program, ReleaseSlots(release, factory=release)))
        replace_link(self.layout.releases(program) / "factory", release.sha256)
        links.point(self.layout, program, run=release.sha256, back=None, trial=False)
        return release

    def record(self, program: str) -> UpdateRecord:
        """Return what is stored."""
        record = store.load(self.layout.record(program)).record
        assert record is not None
        return record

    def offer(self, program: str, release: Release, *, explicit: bool = False) -> None:
        """Let the cloud want a release."""
        self.offered[program] = ReleaseOffer(release, explicit)

    # ---- the service manager of the agent

    async def run(self) -> None:
        """Run everything until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.server.run)
            for program in PROGRAMS:
                nursery.start_soon(self.invariants.watch, program)
            while True:
                sha256 = launch(self.layout, AGENT, full=self._full())
                assert sha256 is not None, "there is no agent to start"
                self.agents.append(sha256)
                behavior = self.cloud.behavior(sha256)
                self._agent_runs = Run(sha256, trio.current_time(), 0.0, False)
                with suppress(PowerLoss):
                    await self._agent(sha256, behavior)
                self.invariants.ran(AGENT, self._agent_runs._replace(end=trio.current_time()))
                self._agent_runs = None
                await trio.sleep(5)

    def running(self, program: str) -> Run | None:
        """Return the process of a program that runs now."""
        if program == SERVER:
            return self.server.process()
        return None if self._agent_runs is None else self._agent_runs._replace(end=trio.current_time())

    def _offline(self) -> str:
        """Return why the agent is offline; note that it was online."""
        if self.cloud.reachable and self._agent_runs is not None:
            self._agent_runs = self._agent_runs._replace(configured=True)
        return self.server._offline()

    async def _agent(self, sha256: str, behavior: Behavior) -> None:
        with trio.move_on_after(behavior.crashes_after or float("inf")):
            if behavior.serves_after is None:
                await trio.sleep(WATCHDOG)
                return
            life = self.life = Life(self.after_step)
            token = _LIFE.set(life)
            try:
                with life.scope:
                    async with trio.open_nursery() as nursery:
                        own = OwnProgram(sha256, self._offline, life.end)
                        programs: dict[str, UpdatedProgram] = {SERVER: Reached(self.server, life), AGENT: own}
                        for name in PROGRAMS:
                            driver = self.drivers[name] = self._driver(name, programs[name], life)
                            await nursery.start(driver.run)
                            nursery.start_soon(self._offers, name, driver)
                        self.server.enable()  # as agent.server does after each start of the agent
            except* PowerLoss:
                raise PowerLoss from None
            finally:
                _LIFE.reset(token)
                assert not life.busy, "the agent is in a busy loop"

    def after_step(self, life: Life) -> None:
        """Crash the agent after a step of one of its tasks, perhaps."""
        if not self.crashes or self.rng.random() >= self.crashes:
            return
        if any(driver.record is not None and driver.record.progress is not None for driver in self.drivers.values()):
            self.crash(life, cleanly=self.rng.random() < 0.5)

    def crash(self, life: Life, *, cleanly: bool) -> None:
        """End the agent at an await: as an error in a task does if `cleanly`, otherwise as SIGKILL does."""
        self.occurred["agent ends at an await" if cleanly else "agent is killed at an await"] += 1
        if cleanly:
            life.end()
        else:
            life.kill()

    def _driver(self, name: str, program: UpdatedProgram, life: Life) -> Driver:
        async def blocking(function: Callable[[], Any]) -> Any:
            return await self._blocking(function, life)

        source = CloudSource(self.cloud, self.rng, self.occurred)
        actions = Actions(self.layout, program, source, blocking, platform=PLATFORM, unpack=unpack)
        clock = Clock(self.wall)
        return Driver(name, self.layout, program, actions, _Permission(self), self.hooks, blocking, clock=clock)

    def wall(self) -> float:
        """Return the time of the device's clock, in seconds since 1970."""
        return EPOCH + self.wall_offset + trio.current_time()

    async def _offers(self, name: str, driver: Driver) -> None:
        while True:
            if self.cloud.reachable and name in self.offered:
                offer = self.offered[name]
                with suppress(MachineError):
                    await driver.offer(offer)
                    # A person asks once; the cloud repeats what it wants.
                    self.offered[name] = ReleaseOffer(offer.release)
            await trio.sleep(self.offered_every)

    async def _blocking(self, function: Callable[[], Any], life: Life | None = None) -> Any:
        await trio.lowlevel.checkpoint()
        life = life or self.life
        life.act()
        self._lose_power("before", life)
        if isinstance(function, partial) and self._is_refused(function):
            self.occurred["disk is full"] += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        saved: UpdateRecord | None = None
        if isinstance(function, partial) and function.func is store.save:
            saved = function.args[1]
            self.invariants.stored(self.drivers[saved.program].record, saved)
        try:
            result = self._call(function)
        finally:
            if not isinstance(function, partial) or function.func not in _READING:
                self.invariants.check()
        if saved is not None:
            stored, self._stored = self._stored, trio.Event()
            self.step = saved.progress.step if saved.progress is not None else None
            stored.set()
        self._lose_power("after", life, self.cuts.get(self.step, 0.0) if saved is not None else 0.0)
        return result

    def _call(self, function: Callable[[], Any]) -> Any:
        return function()

    async def reached(self, step: UpdateStep) -> None:
        """Wait until an update of any program has reached a step, in any process of the agent."""
        while self.step is not step:
            await self._stored.wait()

    def _full(self) -> bool:
        return self.filled and not self.freed

    def _is_refused(self, function: partial[Any]) -> bool:
        """Return whether a call fails because the disk is full."""
        if function.func in _READING:
            return False
        return self.rng.random() < self.disk_full or self._is_filled(function)

    def _is_filled(self, function: partial[Any]) -> bool:
        """Return whether a call fails because a release has filled the disk."""
        running = {self.server.release, self.agents[-1]}
        frees = function.func is disk.free_reserve
        if any(sha is not None and self.cloud.behavior(sha).fills_disk for sha in running):
            self.filled = True  # also with what is freed now
            return not frees
        if frees and self.layout.reserve.exists():
            self.freed = True
        return self.filled and not frees and (not self.freed or function.func is disk.reserve_space)

    def _lose_power(self, when: str, life: Life, more: float = 0.0) -> None:
        if self.rng.random() < self.faults + more:
            self.occurred[f"power fails {when} a call"] += 1
            self.server.reboot()
            if self.clock_is_lost and self.rng.random() < 0.3:
                self.occurred["clock is lost with the power"] += 1
                self.wall_offset = self.rng.choice((-5.0, -0.1, 0.0, 5.0)) * 365 * 24 * 3600
            life.kill()
            raise PowerLoss
