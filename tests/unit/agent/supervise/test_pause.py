"""The pause before systemd restarts machine-server: longer after each crash, and short again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from agent.layout import Layout
from agent.supervise.pause import RestartPause, drop_in
from agent.supervise.systemd import SystemdBackend
from agent.supervise.units import RESTART_PAUSE, files_of
from schema.errors import MachineError

CRASHED = "ActiveState=activating\nMainPID=0\n"
STOPPED = "ActiveState=inactive\nMainPID=0\n"


async def run_now(function: Callable[[], Any]) -> Any:
    return function()


class Systemd:
    """The unit as `systemctl` shows it: `pauses` are those that were in the drop-in at each reload, 0 without one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = self.after_stop = STOPPED
        self.pid = 2**22  # processes with higher ids do not exist
        self.fails = False
        self.pauses: list[float] = []
        self.backend = SystemdBackend(files_of(Layout(path.parent, path.parent)), path, run_now, self)

    async def __call__(self, *arguments: str, limit: float = 0.0) -> str:
        await trio.lowlevel.checkpoint()
        if arguments[0] == "daemon-reload":
            if self.fails:
                raise MachineError("systemctl fails")
            self.pauses.append(pause(self.path))
        if arguments[0] == "stop":
            self.state = self.after_stop
        return self.state if arguments[0] == "show" else ""

    def runs(self, since: float) -> str:
        self.pid += 1
        began = int(since * 1e6)
        return (
            f"ActiveState=active\nMainPID={self.pid}\nExecMainPID={self.pid}\nExecMainStartTimestampMonotonic={began}\n"
        )

    async def show(self, state: str) -> None:
        self.state = state
        self.backend._notice()
        await trio.testing.wait_all_tasks_blocked()

    async def crash(self, ran: float) -> None:
        """Let a process run and end."""
        began = time.monotonic() - ran
        await self.show(self.runs(began))
        identity = f"ExecMainPID={self.pid}\nExecMainStartTimestampMonotonic={int(began * 1e6)}\n"
        await self.show(f"{CRASHED}{identity}ExecMainExitTimestampMonotonic={int((began + ran) * 1e6)}\n")


def pause(path: Path) -> float:
    return float(path.read_text().rpartition("RestartSec=")[2]) if path.exists() else 0.0


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    return Systemd(tmp_path / "unit.d" / "pause.conf")


async def started(nursery: trio.Nursery, systemd: Systemd) -> None:
    await nursery.start(systemd.backend.run, lambda _: None, lambda _: None)


async def test_the_pause_is_doubled_after_each_crash_up_to_five_minutes(systemd: Systemd) -> None:
    async with trio.open_nursery() as nursery:
        await started(nursery, systemd)
        for _ in range(9):
            await systemd.crash(1)
        assert systemd.pauses == [10, 20, 40, 80, 160, 300]  # the first pause is that of the unit
        await systemd.crash(700)
        assert systemd.pauses[-1] == 0
        assert not systemd.path.exists()
        nursery.cancel_scope.cancel()


async def test_the_pause_ends_when_the_server_has_run_for_ten_minutes(
    systemd: Systemd, autojump_clock: trio.testing.MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        await started(nursery, systemd)
        await systemd.crash(1)
        await systemd.crash(1)
        await systemd.show(systemd.runs(time.monotonic() - 100))
        await trio.sleep(495)
        assert pause(systemd.path) == 10
        await trio.sleep(10)
        assert not systemd.path.exists()
        nursery.cancel_scope.cancel()


async def test_a_restart_on_request_does_not_lengthen_the_pause(systemd: Systemd) -> None:
    async with trio.open_nursery() as nursery:
        await started(nursery, systemd)
        await systemd.crash(1)
        await systemd.crash(1)
        await systemd.show(systemd.runs(time.monotonic()))
        systemd.after_stop = systemd.runs(time.monotonic() + 1)  # it runs again before the stop is noticed
        await systemd.backend.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert not systemd.path.exists()
        await systemd.crash(1)  # the second one: that process has ended, too
        assert pause(systemd.path) == 10
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("by", ["agent", "person"])
async def test_a_stop_on_request_ends_the_pause(systemd: Systemd, by: str) -> None:
    async with trio.open_nursery() as nursery:
        await started(nursery, systemd)
        await systemd.crash(1)
        await systemd.crash(1)
        await systemd.show(systemd.runs(time.monotonic()))
        if by == "agent":
            await systemd.backend.stop()
        await systemd.show(STOPPED)
        assert not systemd.path.exists()
        await systemd.crash(1)
        await systemd.crash(1)
        assert pause(systemd.path) == 10
        nursery.cancel_scope.cancel()


async def test_another_agent_continues_and_forgets_the_crashes_of_a_stopped_server(systemd: Systemd) -> None:
    systemd.path.parent.mkdir()
    systemd.path.write_text(drop_in(40.0))
    systemd.state = CRASHED
    async with trio.open_nursery() as nursery:
        await started(nursery, systemd)
        assert pause(systemd.path) == 40
        await systemd.crash(1)
        assert pause(systemd.path) == 80
        nursery.cancel_scope.cancel()
    systemd.state = STOPPED
    async with trio.open_nursery() as nursery:
        await started(nursery, systemd)
        assert not systemd.path.exists()
        nursery.cancel_scope.cancel()


async def test_an_agent_that_starts_long_after_a_crash_removes_the_pause(systemd: Systemd) -> None:
    systemd.path.parent.mkdir()
    systemd.path.write_text(drop_in(40.0))
    systemd.state = systemd.runs(time.monotonic() - 601)
    async with trio.open_nursery() as nursery:
        await started(nursery, systemd)
        await trio.testing.wait_all_tasks_blocked()
        assert not systemd.path.exists()
        nursery.cancel_scope.cancel()


async def test_a_reload_that_fails_is_repeated_with_the_next_change(systemd: Systemd) -> None:
    setting = RestartPause(systemd.path, run_now, systemd)
    await setting.crashed(1)
    systemd.fails = True
    await setting.crashed(1)
    systemd.fails = False
    assert systemd.pauses == []
    setting.crashes = 1
    await setting.crashed(1)  # the same pause
    assert systemd.pauses == [10]


@pytest.mark.parametrize(("text", "crashes"), [
    ("", 0), ("RestartSec=10\n", 2), ("RestartSec=9999\n", 7), ("RestartSec=-1\n", 0), ("RestartSec=nan\n", 0),
])  # fmt: skip
async def test_a_drop_in_that_was_changed_does_no_harm(systemd: Systemd, text: str, crashes: int) -> None:
    systemd.path.parent.mkdir()
    systemd.path.write_text(text)
    setting = RestartPause(systemd.path, run_now, systemd)
    await setting.load()
    assert setting.crashes == crashes


async def test_a_drop_in_that_cannot_be_written_only_is_logged(systemd: Systemd) -> None:
    systemd.path.parent.write_text("a file")
    setting = RestartPause(systemd.path, run_now, systemd)
    await setting.crashed(1)
    await setting.crashed(1)
    assert setting.crashes == 2


def test_drop_ins_of_people_count_more() -> None:
    assert sorted([RESTART_PAUSE.name, "override.conf", "limits.conf"])[0] == RESTART_PAUSE.name
