"""The supervisor with a server in memory, in virtual time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from agent.supervise.health import HealthLimits
from agent.supervise.state import KEPT_EXITS, Ended, ServerExit, ServerProcess, ServerState, Started
from agent.supervise.supervisor import Supervisor
from schema.errors import MachineError

SETTINGS = {"NAME": "value"}


class Machine:
    """A back end and a probe: a server that answers if `answers`, is slow, or hangs."""

    def __init__(self, *, running: bool = False, age: float = 0.0) -> None:
        self.pids = 100
        self.running = running
        self.age = age
        self.answers = True
        self.hangs = False
        self.calls: list[str] = []
        self.environment: Mapping[str, str] = {}
        self.started: Started
        self.ended: Ended
        self.asked = 0
        self.broken = False

    async def run(self, started: Started, ended: Ended, *, task_status: trio.TaskStatus[None]) -> None:
        self.started, self.ended = started, ended
        if self.running:
            started(ServerProcess(self.pids, trio.current_time() - self.age, environment="former"))
        task_status.started()
        await trio.sleep_forever()

    async def start(self) -> None:
        self.calls.append("start")
        self.begin()

    def begin(self) -> None:
        self.pids += 1
        self.running = True
        environment = self.environment.get("MACHINE_ENVIRONMENT", "")
        self.started(ServerProcess(self.pids, trio.current_time(), environment=environment))

    def end(self, reason: str) -> None:
        self.running = False
        self.ended(ServerExit(time.time(), reason, 1.0))

    async def stop(self) -> None:
        self.calls.append("stop")
        if self.running:
            self.end("killed by SIGTERM")

    async def kill(self) -> None:
        self.calls.append("kill")
        if self.broken:
            raise MachineError("cannot be killed")
        self.end("killed by SIGKILL")
        self.begin()

    async def configure(self, environment: Mapping[str, str], *, disabled: bool) -> None:
        self.environment = environment

    async def __call__(self, pid: int) -> bool:
        self.asked += 1
        if self.hangs:
            await trio.sleep_forever()
        return self.answers


async def run_now(function: Callable[[], Any]) -> Any:
    return function()


@asynccontextmanager
async def supervised(machine: Machine, folder: Path, **limits: float) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(
        machine, machine, run_now, exits=folder / "exits", address=folder / "address",
        limits=HealthLimits(**limits),  # type: ignore[arg-type]
    )  # fmt: skip
    async with trio.open_nursery() as nursery:
        await nursery.start(supervisor.run)
        await supervisor.configure(SETTINGS, disabled=False, start_timeout=600.0)
        yield supervisor
        nursery.cancel_scope.cancel()


async def until(supervisor: Supervisor, condition: Callable[[ServerState], object]) -> ServerState:
    async with aclosing(supervisor.changes()) as changes:
        async for state in changes:
            if condition(state):
                return state
    raise AssertionError


async def test_a_serving_server_is_probed_every_15_seconds(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    machine = Machine()
    async with supervised(machine, tmp_path) as supervisor:
        await supervisor.start()
        state = await until(supervisor, lambda state: state.serving_since)
        assert state.process is not None
        assert state.answering
        await trio.sleep(607)
        assert machine.calls == ["start"]
        assert machine.asked == 41  # every 15 s


async def test_a_server_that_does_not_serve_is_killed_and_started_again(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    machine = Machine()
    machine.answers = False
    async with supervised(machine, tmp_path) as supervisor:
        await supervisor.start()
        begun = trio.current_time()
        state = await until(supervisor, lambda state: state.exits and state.process)
        assert 600 <= trio.current_time() - begun <= 610
        assert machine.calls == ["start", "kill"]
        assert state.exits[-1].reason == "killed by SIGKILL: it did not serve within 10 minutes"
        machine.answers = True
        await until(supervisor, lambda state: state.serving_since)


async def test_a_server_that_hangs_is_killed_but_not_one_that_is_slow_for_a_minute(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    machine = Machine()
    async with supervised(machine, tmp_path) as supervisor:
        await supervisor.start()
        await until(supervisor, lambda state: state.serving_since)
        machine.hangs = True
        await until(supervisor, lambda state: not state.answering)
        await trio.sleep(60)
        machine.hangs = False
        await until(supervisor, lambda state: state.answering)
        assert machine.calls == ["start"]
        machine.hangs = True
        begun = trio.current_time()
        state = await until(supervisor, lambda state: state.exits)
        assert 90 <= trio.current_time() - begun <= 180
        assert state.exits[-1].reason == "killed by SIGKILL: it did not answer 6 requests in a row"


async def test_time_during_which_the_computer_slept_is_not_a_failure_of_the_server(
    mock_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    machine = Machine()
    async with supervised(machine, tmp_path, failures=1) as supervisor:
        await supervisor.start()
        await trio.testing.wait_all_tasks_blocked()
        machine.hangs = True
        for _ in range(5):
            mock_clock.jump(3600)  # each time far beyond the end of the request
            await trio.testing.wait_all_tasks_blocked()
        assert machine.calls == ["start"]
        for _ in range(60):
            mock_clock.jump(0.5)
            await trio.testing.wait_all_tasks_blocked()
        assert "kill" in machine.calls


async def test_killing_a_server_is_retried(autojump_clock: trio.testing.MockClock, tmp_path: Path) -> None:
    machine = Machine()
    machine.answers, machine.broken = False, True
    async with supervised(machine, tmp_path) as supervisor:
        await supervisor.start()
        await trio.sleep(1300)
        assert machine.calls == ["start", "kill", "kill"]
        assert supervisor.state().exits == ()


@pytest.mark.parametrize(("answers", "killed_after"), [(True, None), (False, 60)])
async def test_a_running_server_is_adopted(
    autojump_clock: trio.testing.MockClock, tmp_path: Path, answers: bool, killed_after: float | None
) -> None:
    machine = Machine(running=True, age=86400.0)
    machine.answers = answers
    async with supervised(machine, tmp_path) as supervisor:
        process = supervisor.state().process
        assert process is not None
        assert process.pid == 100
        await trio.sleep(55)
        assert machine.calls == []
        await trio.sleep(15)
        assert machine.calls == ([] if killed_after is None else ["kill"])


async def test_a_crash_is_kept_and_a_requested_stop_is_not(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    machine = Machine()
    async with supervised(machine, tmp_path) as supervisor:
        await supervisor.start()
        await supervisor.stop(reason="a test")
        assert supervisor.state().exits == ()
        assert supervisor.state().process is None
        for number in range(KEPT_EXITS + 2):
            machine.begin()
            machine.end(f"exit code {number}")
        reasons = [entry.reason for entry in supervisor.state().exits]
        assert reasons == [f"exit code {number}" for number in range(2, KEPT_EXITS + 2)]
        await trio.testing.wait_all_tasks_blocked()
    async with supervised(Machine(), tmp_path) as supervisor:
        assert [entry.reason for entry in supervisor.state().exits] == reasons


async def test_a_disabled_server_is_stopped_and_stays_stopped(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    machine = Machine()
    async with supervised(machine, tmp_path) as supervisor:
        await supervisor.start()
        await supervisor.configure(SETTINGS, disabled=True, start_timeout=600.0)
        assert (machine.running, supervisor.state().disabled) == (False, True)
        await supervisor.start()
        await supervisor.restart(reason="a test")
        assert not machine.running
        await supervisor.configure(SETTINGS, disabled=False, start_timeout=600.0)
        assert machine.running
        await supervisor.configure(SETTINGS, disabled=False, start_timeout=600.0)
        assert machine.calls == ["start", "stop", "stop", "start"]


async def test_another_environment_needs_a_restart(autojump_clock: trio.testing.MockClock, tmp_path: Path) -> None:
    machine = Machine()
    async with supervised(machine, tmp_path) as supervisor:
        await supervisor.start()
        assert supervisor.state().restart_needed == ""
        await supervisor.configure({"NAME": "another"}, disabled=False, start_timeout=600.0)
        assert supervisor.state().restart_needed == "its environment variables have changed"
        await supervisor.configure(SETTINGS, disabled=False, start_timeout=600.0)
        assert supervisor.state().restart_needed == ""
        await supervisor.configure({}, disabled=False, start_timeout=600.0)
        await supervisor.restart(reason=supervisor.state().restart_needed)
        assert supervisor.state().restart_needed == ""


async def test_the_start_timeout_of_the_settings_applies(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    machine = Machine()
    machine.answers = False
    async with supervised(machine, tmp_path) as supervisor:
        await supervisor.configure(SETTINGS, disabled=False, start_timeout=1200.0)
        await supervisor.start()
        begun = trio.current_time()
        await until(supervisor, lambda state: state.exits)
        assert 1200 <= trio.current_time() - begun <= 1210


async def test_decisions_are_logged_with_their_reason(autojump_clock: trio.testing.MockClock, tmp_path: Path) -> None:
    machine = Machine()
    with capture_logs() as log:
        async with supervised(machine, tmp_path) as supervisor:
            await supervisor.start()
            await until(supervisor, lambda state: state.answering)
            machine.hangs = True
            await trio.sleep(3600)
            await supervisor.configure({}, disabled=True, start_timeout=60.0)
    lines = [entry for entry in log if entry["log_level"] == "debug"]
    health = [entry for entry in lines if entry["event"] == "decided whether machine-server is healthy"]
    assert (health[0]["decision"], health[0]["answer"]) == ("keep", "answered")
    killed = next(entry for entry in health if entry["decision"] == "kill")
    assert killed["answer"] == "silent"
    assert killed["reason"]
    settings = [entry for entry in lines if entry["event"].startswith("decided about machine-server after")]
    assert [entry["decision"] for entry in settings] == ["keep", "stop"]
