"""The supervisor with real processes, started by the real launcher."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
import trio

from agent.launch.links import install_launcher, point, read
from agent.layout import SERVER, Layout
from agent.supervise import child
from agent.supervise.assembly import with_child
from agent.supervise.health import HealthLimits
from agent.supervise.probe import read_addresses, writer
from agent.supervise.processes import is_suspended, listening
from agent.supervise.state import ServerState
from agent.supervise.supervisor import Supervisor
from agent.supervise.units import files_of, server_environment
from support.worker import Worker

A, B = "a" * 64, "b" * 64
LIMIT = 60.0
ROOT = Path(__file__).parents[3]

SERVES = f"""#!{sys.executable}
import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
path = os.environ["MACHINE_ADDRESS_FILE"]
with open(path + ".part", "w") as file:
    json.dump({{"pid": os.getpid(), "addresses": ["127.0.0.1:%d" % server.server_port], "tls": False}}, file)
os.replace(path + ".part", path)
server.serve_forever()
"""
HANGS = "#!/bin/sh\necho it hangs >&2\nexec sleep 1000\n"
EXITS = "#!/bin/sh\nexit 3\n"
DEAF = "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1000; done\n"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "opt", tmp_path / "run")
    for folder in layout.folders:
        folder.mkdir(parents=True, exist_ok=True)
    install_launcher(layout)
    return layout


def stage(layout: Layout, sha256: str, program: str) -> None:
    folder = layout.release(SERVER, sha256)
    folder.mkdir(parents=True)
    (folder / "run").write_text(program)
    (folder / "run").chmod(0o755)


@asynccontextmanager
async def supervised(
    layout: Layout, *, start_timeout: float = 600.0, config: Path = Path("/nonexistent")
) -> AsyncIterator[Supervisor]:
    worker = Worker("tests")
    with trio.fail_after(LIMIT):
        async with worker.opened(), trio.open_nursery() as nursery:
            supervisor = with_child(layout, config, worker)
            supervisor.limits = HealthLimits(retry=0.2, interval=0.2, request=2.0, failures=2)
            await nursery.start(supervisor.run)
            environment = server_environment(layout, {"COLOR": "red"})
            await supervisor.configure(environment, disabled=False, start_timeout=start_timeout)
            await supervisor.start()
            yield supervisor
            nursery.cancel_scope.cancel()


async def until(supervisor: Supervisor, condition: Callable[[ServerState], object]) -> ServerState:
    async with aclosing(supervisor.changes()) as changes:
        async for state in changes:
            if condition(state):
                return state
    raise AssertionError


def pid_of(state: ServerState) -> int:
    assert state.process is not None
    return state.process.pid


async def environ(pid: int) -> bytes:
    try:
        return await trio.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_the_server_is_restarted_after_a_crash_and_ends_with_the_agent(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "restart_delay", lambda crashes: 0.0)
    stage(layout, A, SERVES)
    point(layout, SERVER, run=A, back=None, trial=False)
    async with supervised(layout) as supervisor:
        first = await until(supervisor, lambda state: state.serving_since)
        pid = pid_of(first)
        assert b"COLOR=red\0" in await environ(pid)
        os.kill(pid, signal.SIGSEGV)
        second = await until(supervisor, lambda state: state.exits and state.serving_since)
        assert second.exits[-1].reason == "killed by SIGSEGV"
        assert pid_of(second) != pid
        await supervisor.restart(reason="a test")
        third = await until(supervisor, lambda state: state.serving_since)
        assert len(third.exits) == 1
    assert not exists(pid_of(third))


async def test_a_trial_release_that_exits_is_replaced_by_the_previous_one(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "restart_delay", lambda crashes: 0.0)
    stage(layout, A, SERVES)
    stage(layout, B, EXITS)
    point(layout, SERVER, run=B, back=A, trial=True)
    async with supervised(layout) as supervisor:
        state = await until(supervisor, lambda state: state.serving_since)
        assert [entry.reason for entry in state.exits] == ["exit code 3"] * 3
        assert f"MACHINE_RELEASE={A}".encode() in await environ(pid_of(state))
        assert read(layout, SERVER).fell_back


async def test_a_server_that_never_serves_is_killed(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "restart_delay", lambda crashes: 0.0)
    stage(layout, A, HANGS)
    point(layout, SERVER, run=A, back=None, trial=False)
    files_of(layout).address.write_text('{"pid": 1, "addresses": []}')
    async with supervised(layout, start_timeout=0.6) as supervisor:
        first = pid_of(await until(supervisor, lambda state: state.process))
        files_of(layout).address.write_text(f'{{"pid": {first}, "addresses": []}}')
        state = await until(supervisor, lambda state: state.exits)
        assert state.exits[0].reason == "killed by SIGKILL: it did not serve within 0.01 minutes"


async def test_a_server_that_hangs_is_killed(layout: Layout) -> None:
    hangs = SERVES.replace("server.serve_forever()", "server.handle_request(); import time; time.sleep(1000)")
    stage(layout, A, hangs)
    point(layout, SERVER, run=A, back=None, trial=False)
    async with supervised(layout) as supervisor:
        await until(supervisor, lambda state: state.serving_since)
        state = await until(supervisor, lambda state: state.exits)
        assert state.exits[0].reason == "killed by SIGKILL: it did not answer 2 requests in a row"


async def test_a_program_that_writes_no_address_is_asked_where_it_listens(layout: Layout) -> None:
    silent = "".join(
        line for line in SERVES.splitlines(True) if not line.startswith(("path", "with", "    json", "os."))
    )
    stage(layout, A, silent)
    point(layout, SERVER, run=A, back=None, trial=False)
    async with supervised(layout) as supervisor:
        state = await until(supervisor, lambda state: state.serving_since)
        assert not await trio.Path(files_of(layout).address).exists()
        assert len(listening(pid_of(state))) == 1


async def test_machine_server_writes_its_address_and_serves(layout: Layout, tmp_path: Path) -> None:
    stage(layout, A, f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m runtime.server.cli "$@"\n')
    point(layout, SERVER, run=A, back=None, trial=False)
    config = tmp_path / "machine.json"
    config.write_text('{"network": {"bind_address": "localhost:0"}}')
    async with supervised(layout, config=config) as supervisor:
        state = await until(supervisor, lambda state: state.serving_since)
        address = files_of(layout).address
        assert writer(address) == pid_of(state)
        file = await trio.Path(address).read_text()
        assert b"MACHINE_ROOT=" in await environ(pid_of(state))
        await supervisor.stop(reason="a test")
        assert await trio.Path(address).read_text() != file
        assert read_addresses(address, pid_of(state)) == ()


def test_a_suspended_process_is_recognized() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            assert not is_suspended(process.pid)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            assert is_suspended(process.pid)
        finally:
            process.kill()


async def test_a_stop_is_orderly_and_then_by_force(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    stage(layout, A, DEAF)
    point(layout, SERVER, run=A, back=None, trial=False)
    monkeypatch.setattr(child.ChildBackend.__init__, "__kwdefaults__", {"leftovers": (), "stop_time": 0.3})
    async with supervised(layout) as supervisor:
        pid = pid_of(await until(supervisor, lambda state: state.process))
        await supervisor.stop(reason="a test")
        assert supervisor.state().process is None
        assert supervisor.state().exits == ()
        assert not exists(pid)


async def test_the_server_of_an_agent_that_was_killed_is_ended(layout: Layout) -> None:
    stage(layout, A, SERVES)
    point(layout, SERVER, run=A, back=None, trial=False)
    agent = f"""
import sys, trio
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from agent.layout import Layout
from tests.e2e.agent.test_supervision import supervised, until
async def main():
    async with supervised(Layout(Path(sys.argv[1]), Path(sys.argv[2]))) as supervisor:
        state = await until(supervisor, lambda state: state.serving_since)
        print("pid", state.process.pid, flush=True)
        await trio.sleep_forever()
trio.run(main)
"""
    async with trio.open_nursery() as nursery:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-c", agent, str(layout.root), str(layout.run)], stdout=-1
        )
        output = b""
        with trio.fail_after(LIMIT):
            while b"pid " not in output or not output.rpartition(b"pid ")[2].endswith(b"\n"):
                assert process.stdout is not None
                data = await process.stdout.receive_some()
                assert data, output
                output += bytes(data)
        process.kill()
        await process.wait()
        await process.stdout.aclose()
        nursery.cancel_scope.cancel()
    pid = int(output.rpartition(b"pid ")[2])
    assert exists(pid)
    async with supervised(layout) as supervisor:
        state = await until(supervisor, lambda state: state.serving_since)
        assert pid_of(state) != pid
        assert f'"pid": {pid},' not in files_of(layout).address.read_text()
        assert not await environ(pid)  # it has ended, even if the init process of this computer collects no zombies


async def test_a_missing_launcher_is_reported(layout: Layout) -> None:
    layout.launcher.unlink()
    async with supervised(layout) as supervisor:
        state = await until(supervisor, lambda state: state.exits)
        assert state.exits[0].reason == f"{layout.launcher} cannot be executed: No such file or directory"
