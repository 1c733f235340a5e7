"""The managed server with a back end in memory, in virtual time."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

import agent.server as module
from agent.control.report import ProgramReport, WaitReport
from agent.control.settings import SettingsState
from agent.layout import SERVER, Layout
from agent.parts import part
from agent.server import (
    ASK_AGAIN,
    INSTALL_LIMIT,
    LEASES,
    RETRY,
    SERVER_SETTINGS,
    SUPERVISION,
    UPDATES,
    WAIT_LIMIT,
    ManagedServer,
)
from agent.supervise.probe import RestartStatus, _status
from agent.supervise.supervisor import Supervisor
from agent.supervise.watchdog import Watchdog
from agent.update import store
from agent.update.record import Release, ReleaseSlots, UpdateRecord
from nursery_graph import Graph
from support.systemd import ServiceManager
from support.worker import Worker
from tests.unit.agent.supervise.test_supervisor import Machine, run_now

RELEASE = Release("1.2.3", "a" * 64, 1, "https://example.com/a", "linux/x86_64")
ADVANCED = "advanced_settings"


class Records:
    """Updates that never begin."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.installed = trio.Event()  # what the first answer of the cloud leads to
        self.loaded = trio.Event()
        self.failing = False
        self.may_load = trio.Event()
        self.may_load.set()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        if self.failing:
            raise RecursionError("a defect")
        await self.may_load.wait()
        self.loaded.set()
        task_status.started()
        await trio.sleep_forever()

    def record(self, name: str) -> UpdateRecord | None:
        return store.load(self._layout.record(name)).record

    async def first_update(self, name: str) -> None:
        await self.installed.wait()

    def waiting(self, name: str) -> tuple[WaitReport, ...]:
        return ()

    def kept(self, name: str) -> str:
        return "the cloud has no release for this machine"


class World:
    """A managed server, the fake process behind it, and its settings."""

    def __init__(self, folder: Path, *, installed: bool = True, **options: Any) -> None:
        self.layout = Layout(folder / "opt", folder / "run")
        self.layout.state.mkdir(parents=True)
        if installed:
            store.save(self.layout.record(SERVER), UpdateRecord(SERVER, ReleaseSlots(RELEASE)))
        self.process = Machine()
        self.updates = Records(self.layout)
        self.asked = trio.Event()
        self.graph = Graph()
        self.settings = SettingsState(folder / "defaults", folder / "stored", run_now)
        self.server = ManagedServer(self.layout, folder / "machine.json", Worker("tests"), systemd=False, **options)
        self.server.supervisor = Supervisor(
            self.process, self.process, run_now, exits=folder / "exits", address=folder / "address"
        )
        self.server._worker = self  # type: ignore[assignment]

    async def run(self, function: Callable[[], Any]) -> Any:
        return function()

    async def until(self, condition: Callable[[ProgramReport], object]) -> ProgramReport:
        async with aclosing(self.server.supervisor.changes()) as changes:
            async for _ in changes:
                if condition(report := self.server.report()):
                    return report
        raise AssertionError


@asynccontextmanager
async def opened(world: World) -> AsyncIterator[World]:
    await world.settings.load()
    nodes = world.server.nodes(world.settings, world.asked, Watchdog(ServiceManager()), world.updates)
    world.graph.apply([*nodes, part(UPDATES, world.updates.run, requires={LEASES, SUPERVISION, SERVER_SETTINGS})])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.graph.run)
        await trio.testing.wait_all_tasks_blocked()
        yield world
        nursery.cancel_scope.cancel()


async def test_a_restart_for_settings_waits_until_maintenance_allows_it(
    autojump_clock: trio.testing.MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = False

    async def restart_status(*_: object) -> RestartStatus:
        await trio.lowlevel.checkpoint()
        return RestartStatus(restart_allowed=allowed)

    monkeypatch.setattr(module, "restart_status", restart_status)
    async with opened(World(tmp_path)) as world:
        await world.until(lambda report: report.serving)
        await world.settings.apply({ADVANCED: {"viam_server_env": {"COLOR": "red"}}})
        report = await world.until(lambda report: report.restart)
        assert report.restart is not None
        assert report.restart.reason == "its environment variables have changed"
        with trio.fail_after(1):
            async with aclosing(world.server.changes()) as changes:
                async for _ in changes:
                    if world.server.report().restart_waiting_for:
                        break
        await trio.sleep(10 * ASK_AGAIN)
        assert world.process.calls == ["start"]
        allowed = True
        report = await world.until(lambda report: report.serving and not report.restart)
        assert world.process.calls == ["start", "stop", "start"]
        assert world.process.environment["COLOR"] == "red"


async def test_a_restart_waits_for_a_window_and_takes_place_when_the_settings_no_longer_have_it(
    autojump_clock: trio.testing.MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC0")

    async def restart_status(*_: object) -> RestartStatus:
        await trio.lowlevel.checkpoint()
        return RestartStatus(restart_allowed=True)

    monkeypatch.setattr(module, "restart_status", restart_status)
    opens, closes = (datetime.fromtimestamp(time.time() + hours * 3600, UTC) for hours in (12, 13))
    window = {"start": f"{opens:%H:%M}", "end": f"{closes:%H:%M}"}
    async with opened(World(tmp_path)) as world:
        await world.until(lambda report: report.serving)
        environment = {"viam_server_env": {"COLOR": "red"}}
        await world.settings.apply({ADVANCED: {**environment, "maintenance_windows": [window]}})
        await world.until(lambda report: report.restart)
        since = time.time()
        await trio.sleep(10 * ASK_AGAIN + 5)
        assert world.process.calls == ["start"]
        (waiting,) = world.server.report().restart_waiting_for
        assert waiting.reason == f"the maintenance window opens at {opens:%Y-%m-%d %H:%M} UTC"
        assert abs(waiting.since - since) < 60
        before = trio.current_time()
        await world.settings.apply({ADVANCED: environment})
        await world.until(lambda report: not report.restart)
        assert trio.current_time() == before
        assert "stop" in world.process.calls


async def test_a_server_that_does_not_answer_is_restarted_without_asking(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.process.answers = False
    async with opened(world):
        await world.settings.apply({ADVANCED: {"viam_server_env": {"COLOR": "red"}}})
        await trio.testing.wait_all_tasks_blocked()
        assert world.process.calls == ["start", "stop", "start"]


async def test_a_cloud_that_does_not_answer_delays_the_first_start_for_a_minute(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    async with opened(World(tmp_path, wait=True)) as world:
        await trio.sleep(WAIT_LIMIT - 1)
        assert world.process.calls == []
        await trio.sleep(2)
        assert world.process.calls == ["start"]


@pytest.mark.parametrize(("option", "setting"), [(True, False), (False, True)], ids=["option", "setting"])
async def test_the_first_start_waits_until_the_cloud_was_asked(tmp_path: Path, option: bool, setting: bool) -> None:
    world = World(tmp_path, wait=option)
    (tmp_path / "stored").write_text(json.dumps({ADVANCED: {"wait_for_update_check": setting}}))
    async with opened(world):
        world.asked.set()
        await trio.testing.wait_all_tasks_blocked()
        assert world.process.calls == []
        world.updates.installed.set()
        await world.until(lambda report: report.running)


async def test_the_first_start_does_not_wait_forever_for_an_installation(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    async with opened(World(tmp_path, wait=True)) as world:
        world.asked.set()
        await trio.sleep(INSTALL_LIMIT - 1)
        assert world.process.calls == []
        await trio.sleep(2)
        assert world.process.calls == ["start"]


async def test_a_fast_start_does_not_wait(tmp_path: Path) -> None:
    async with opened(World(tmp_path, wait=True, fast=True)) as world:
        assert world.process.calls == ["start"]


async def test_a_missing_installation_is_reported(tmp_path: Path) -> None:
    async with opened(World(tmp_path, installed=False)) as world:
        (problem,) = world.server.problems
        assert (problem.path, problem.message) == (SERVER, "machine-server is not installed")
        assert "--dev-mode" in problem.remedy
        assert world.process.calls == []


async def test_settings_that_cannot_be_applied_are_reported_and_retried(
    autojump_clock: trio.testing.MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    configure = world.process.configure

    async def full(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(world.process, "configure", full)
    seen: dict[float, int] = {}
    async with opened(world), trio.open_nursery() as nursery:

        async def follow() -> None:
            async with aclosing(world.server.changes()) as changes:
                async for _ in changes:
                    seen[trio.current_time()] = len(world.server.problems)

        nursery.start_soon(follow)
        (problem,) = world.server.problems
        assert "No space left on device" in problem.message
        assert world.process.calls == ["start"]
        await trio.sleep(3 * RETRY + 1)
        monkeypatch.setattr(world.process, "configure", configure)
        await trio.sleep(RETRY + 1)
        assert world.server.problems == ()
        nursery.cancel_scope.cancel()
    assert list(seen.values()) == [1, 0]


async def test_the_server_is_started_and_supervised_although_the_updates_have_failed(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.updates.failing = True
    async with opened(world):
        with trio.fail_after(60):
            await world.until(lambda report: report.serving)
        assert world.process.calls == ["start"]
        world.updates.failing = False
        await trio.sleep(120)
        assert world.graph.snapshot()[UPDATES].failure == ""
        assert "stop" not in world.process.calls


async def test_the_server_is_not_started_before_the_records_of_updates_are_loaded(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.updates.may_load = trio.Event()  # a full disk, for example
    async with opened(world):
        await trio.sleep(30)
        assert world.process.calls == []
        world.updates.may_load.set()
        await world.until(lambda report: report.serving)


async def test_supervision_that_has_failed_adopts_the_server_again(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    async with opened(World(tmp_path)) as world:
        await world.until(lambda report: report.serving)
        supervisor = world.server.supervisor
        assert supervisor._nursery is not None

        async def fail() -> None:
            raise RecursionError("a defect")

        supervisor._nursery.start_soon(fail)
        with trio.fail_after(60):
            await world.until(lambda report: not report.running)
            await world.until(lambda report: report.serving)


OK = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    ("response", "status"),
    [
        (OK + b'{"restart_allowed": true}', RestartStatus()),
        (OK + b'{"restart_allowed": false, "reason": "a door"}', RestartStatus(restart_allowed=False, reason="a door")),
        (OK + b'{"restart_allowed": true, "configured": false}', RestartStatus(configured=False)),
        (b"HTTP/1.1 404 Not Found\r\n\r\n{}", RestartStatus()),
        (OK + b"<html>", RestartStatus()),
    ],
    ids=["allowed", "refused", "not configured", "no such page", "another page"],
)
def test_the_answer_of_the_server_decides(response: bytes, status: RestartStatus) -> None:
    assert _status(response) == status
