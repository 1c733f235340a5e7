"""Parts of the agent: one that fails once, always, at its start, or does not end; and a release on trial."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from agent import app as module
from agent.app import AgentApp, AgentOptions
from agent.parts import RESTART, START_TIMEOUT, STOP_TIMEOUT, PartStates, at_once, part
from nursery_graph import Graph, Node, Overdue, Restart
from schema.errors import ErrorKind, MachineError
from support.systemd import ServiceManager
from support.worker import Worker
from telemetry.logs.loggers import Logs
from telemetry.logs.ring import LogRing

DELAY = RESTART.max_delay


class Failing:
    """A part that fails at its first runs, before or after it is ready; `runs` are the times of its runs."""

    def __init__(self, failures: float = math.inf, *, error: Exception | None = None, ready: bool = True) -> None:
        self.runs: list[float] = []
        self._failures, self._ready = failures, ready
        self._error = error or RecursionError("too deep")
        self.runs_on = trio.Event()

    async def __call__(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.runs.append(trio.current_time())
        fails = len(self.runs) <= self._failures
        if self._ready or not fails:
            task_status.started()
        if fails:
            raise self._error
        self.runs_on.set()
        await trio.sleep_forever()


class Healthy:
    """A part that must not be disturbed."""

    def __init__(self) -> None:
        self.starts = 0

    async def __call__(self) -> None:
        self.starts += 1
        await trio.sleep_forever()


class Parts:
    def __init__(self, *nodes: Node, stop_limit: float = 60.0) -> None:
        self.overdue: list[Overdue] = []
        self.graph = Graph(shutdown_timeout=stop_limit, on_overdue=self.overdue.append)
        self.states = PartStates(self.graph)
        self.failures: list[tuple[str, str]] = []
        self.healthy = Healthy()
        self.graph.apply([part("healthy", at_once(self.healthy)), *nodes])

    async def note(self, name: str, reason: str) -> None:
        self.failures.append((name, reason))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.states.follow, self.note)
            nursery.start_soon(self.graph.run)
            await wait_all_tasks_blocked()
            yield
            self.graph.stop()

    def state(self, name: str) -> str:
        return next(report.state for report in self.states.reports() if report.name == name)


@pytest.mark.parametrize("ready", [True, False], ids=["when it runs", "at its start"])
async def test_a_part_that_fails_once_is_started_again_after_a_delay(autojump_clock: MockClock, ready: bool) -> None:
    failing = Failing(1, ready=ready)
    parts = Parts(part("failing", failing))
    async with parts.running():
        (problem,) = parts.states.problems
        assert problem.path == "machine-agent, failing"
        assert "too deep" in problem.message
        assert parts.state("failing") == "unhealthy"
        assert (parts.states.has_failed("failing"), parts.states.has_failed("healthy")) == (True, False)
        await trio.sleep(RESTART.first_delay)
        assert parts.state("failing") == "ready"
        assert parts.states.problems == ()
        assert len(failing.runs) == 2
        assert failing.runs[1] - failing.runs[0] >= RESTART.first_delay / 2
        assert parts.healthy.starts == 1
    assert parts.failures == [("failing", "RecursionError: too deep")]


async def test_a_part_that_always_fails_is_repeated_with_growing_delays_and_disturbs_no_other(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A logger that was used under another configuration of this process keeps it.
    monkeypatch.setattr("agent.parts._log", structlog.get_logger("agent"))
    failing = Failing()
    parts = Parts(part("failing", failing))
    with capture_logs() as entries:
        async with parts.running():
            begun = time.time()
            await trio.sleep(3600)
            delays = [after - before for before, after in zip(failing.runs, failing.runs[1:], strict=False)]
            assert all(DELAY / 2 <= delay <= DELAY for delay in delays[7:])
            assert 60 <= len(failing.runs) <= 130
            assert parts.healthy.starts == 1
            (report,) = [report for report in parts.states.reports() if report.name == "failing"]
            assert report.state == "unhealthy"
            assert abs(report.since - begun) < 60, "since the first failure, not since the last attempt"
    logged = [entry["failures"] for entry in entries if entry["event"] == "a part of the agent has failed"]
    assert logged == [1, 2, 4, 8, 16, 32, 64]
    assert sum(entry["event"] == "a part of the agent has a defect" for entry in entries) == 1


async def test_failures_in_a_row_do_not_change_the_report(autojump_clock: MockClock) -> None:
    parts = Parts(part("failing", Failing(error=OSError(28, "No space left on device"), ready=False)))
    async with parts.running():
        reports = set()
        for _ in range(100):
            reports.add(parts.states.reports())
            await trio.sleep(3.3)
        assert len(reports) == 1


async def test_a_part_that_hangs_at_its_start_is_started_again(autojump_clock: MockClock) -> None:
    runs = 0

    async def hang_once(*, task_status: trio.TaskStatus[None]) -> None:
        nonlocal runs
        runs += 1
        if runs > 1:
            task_status.started()
        await trio.sleep_forever()

    parts = Parts(part("hanging", hang_once))
    async with parts.running():
        await trio.sleep(START_TIMEOUT + 1)
        assert f"not ready within {START_TIMEOUT:g} s" in parts.failures[0][1]
        await trio.sleep(RESTART.first_delay)
        assert parts.state("hanging") == "ready"
        assert parts.healthy.starts == 1


async def test_a_part_that_needs_another_is_stopped_before_it_and_started_after_it(autojump_clock: MockClock) -> None:
    order: list[str] = []

    def life(name: str) -> Node:
        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            order.append(f"{name} starts")
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                order.append(f"{name} ends")

        return part(name, run, requires={"supervision"} if name == "updates" else ())

    parts = Parts(life("updates"), life("supervision"))
    async with parts.running():
        pass
    assert order == ["supervision starts", "updates starts", "updates ends", "supervision ends"]


async def test_a_part_that_hangs_when_it_is_stopped_delays_the_others_for_a_bounded_time(
    autojump_clock: MockClock,
) -> None:
    ended: dict[str, float] = {}

    async def hang(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(1000)

    async def run(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            ended["supervision"] = trio.current_time()

    parts = Parts(part("supervision", run), part("updates", hang, requires={"supervision"}), stop_limit=60.0)
    async with parts.running():
        begun = trio.current_time()
    assert ended["supervision"] - begun == pytest.approx(STOP_TIMEOUT)
    (overdue,) = parts.overdue
    assert list(overdue.tasks) == ["updates"], "this ends the process: see agent.shutdown"


# ---- the program


class World:
    """The program without credentials, and with a part that is added."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        options = AgentOptions(folder / "machine.json", folder / "defaults.json", dev_mode=True, root=folder / "opt")
        for path in (options.layout.state, options.layout.run):
            path.mkdir(parents=True)
        self.on_trial = False
        self.limits: list[str] = []
        monkeypatch.setattr(module, "limit_stop", lambda: self.limits.append("limited"))
        monkeypatch.setattr(module, "is_on_trial", lambda layout: self.on_trial)
        self._options = options
        self.app: AgentApp

    async def run(self, node: Node, until: trio.Event | None = None) -> None:
        """Run until the program stops, or until an event."""
        worker, manager, logs = Worker("tests"), ServiceManager(), Logs([], LogRing(), time.monotonic)
        async with worker.opened(), trio.open_nursery() as nursery:
            self.app = AgentApp(self._options, self._options.layout, logs, worker, manager, systemd=False)
            nursery.start_soon(self.app.states.follow, self.app.part_failed)
            await self.app.settings.load()
            self.app.start()
            nursery.start_soon(self.app.graph.run)
            self.app.graph.apply([*self.app._first, node])
            with trio.fail_after(60):
                await (until if until is not None else self.app.stopping).wait()
            self.app.graph.stop()


async def test_an_important_part_that_fails_ends_a_release_on_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch)
    world.on_trial = True
    await world.run(part("updates", Failing()))
    assert world.app.failure.startswith("this release is on trial, and its part 'updates' has failed: RecursionError")
    assert world.limits == ["limited"], "the end of the process is bounded, whatever hangs"


@pytest.mark.parametrize(
    ("on_trial", "name"),
    [(False, "updates"), (True, "network"), (True, "system configuration: upgrades"), (True, "journal forwarding")],
)
async def test_other_parts_and_releases_that_are_confirmed_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_trial: bool, name: str
) -> None:
    world = World(tmp_path, monkeypatch)
    world.on_trial = on_trial
    failing = Failing(1)
    await world.run(part(name, failing, restart=Restart(first_delay=0.01)), failing.runs_on)
    assert len(failing.runs) == 2
    assert world.app.failure == ""
    assert not world.app.stopping.is_set()


async def test_without_credentials_a_request_for_the_status_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch)
    ready = Failing(0)
    await world.run(part("other", ready), ready.runs_on)
    with pytest.raises(MachineError, match=r"waits for credentials in .*machine\.json") as caught:
        world.app._commands["status"]({})
    assert caught.value.kind is ErrorKind.UNAVAILABLE
