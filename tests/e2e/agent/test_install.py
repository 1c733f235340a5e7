"""The commands of the installation as processes, and the agent that waits for credentials."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from agent.install.release_files import OPTIONS
from agent.install.target import InstallTarget
from agent.launch.links import point
from agent.layout import AGENT, PROGRAMS, SERVER, Layout
from agent.update.store import load
from tests.e2e.agent.support import Part, new_part
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.test_command import Terminal
from tests.e2e.harness import START_LIMIT_S, STOP_LIMIT_S
from tests.helpers.release_files import write_release

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="installing needs root")


def machine_agent(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agent.start", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=START_LIMIT_S, check=False)


def image(root: Path) -> Path:
    """Create what the installation needs to see of an image: systemd, and this interpreter."""
    for name in ("usr/lib/systemd/systemd", sys.executable.lstrip("/")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch(mode=0o755)
    (root / "opt").mkdir(exist_ok=True)
    return root


def test_an_image_is_prepared(tmp_path: Path) -> None:
    root = image(tmp_path)
    credentials = tmp_path / "mine.json"
    credentials.write_text('{"cloud": {"id": "p", "secret": "s", "app_address": "https://cloud.example"}}')
    for _ in range(2):
        done = machine_agent("--preinstall", str(root), "--credentials", str(credentials))
        assert done.returncode == 0, done.stderr
    assert f"installed into {root}: machine-agent starts when that system is booted" in done.stdout
    unit = (root / "etc/systemd/system/machine-server.service").read_text()
    assert "-config /etc/machine.json" in unit.replace('"', "")
    assert str(root) not in unit
    assert (root / "opt/machine/launch/machine-agent/run/run").is_file()
    assert (root / "etc/machine.json").stat().st_mode & 0o777 == 0o600
    assert not (root / "run/machine").exists()


def test_an_image_that_cannot_run_the_package_is_refused(tmp_path: Path) -> None:
    root = image(tmp_path)
    (root / sys.executable.lstrip("/")).unlink()
    done = machine_agent("--preinstall", str(root))
    assert done.returncode == 1
    assert f"{root} has no {sys.executable} to run it" in done.stderr
    assert not (root / "opt/machine").exists()


def test_the_running_system_is_not_an_image() -> None:
    done = machine_agent("--preinstall", "/")
    assert (done.returncode, done.stdout) == (1, "")
    assert "/ is the running system" in done.stderr


async def test_an_agent_without_credentials_is_ready_for_systemd(tmp_path: Path) -> None:
    """A unit with Type=notify that is not ready would be ended and started again every five minutes."""
    with trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM) as socket:
        await socket.bind(str(tmp_path / "notify"))
        command = [sys.executable, "-m", "agent.start", "--dev-mode", "--root", str(tmp_path / "opt")]
        command += ["--config", str(tmp_path / "none.json")]
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000"}
        process = await trio.lowlevel.open_process(command, env=environment)
        messages = ""
        try:
            with trio.fail_after(START_LIMIT_S):
                while "READY=1" not in messages or "WATCHDOG=1" not in messages:
                    messages += (await socket.recv(4096)).decode() + "\n"
            assert "waits for credentials" in messages
            process.terminate()
            with trio.fail_after(STOP_LIMIT_S):
                assert await process.wait() == 0
                while "STOPPING=1" not in messages:
                    messages += (await socket.recv(4096)).decode() + "\n"
        finally:
            if process.poll() is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()


def script(program: str) -> str:
    """Return the program of a release that is this source tree."""
    return f'exec {sys.executable} -m {"agent.start" if program == AGENT else "runtime.server.start"} "$@"\n'


@dataclass
class World:
    """A cloud with signed releases of both programs, and an image."""

    running: CloudProcess
    terminal: Terminal
    files: Mapping[str, Path]
    part: Part
    root: Path
    folder: Path

    async def preinstall(self, *options: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "agent.start", "--preinstall", str(self.root)]
        command += ["--credentials", str(self.part.file), *options]
        with trio.fail_after(START_LIMIT_S):
            return await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)

    async def publish(self, *programs: str) -> None:
        names = [str(self.files[program]) for program in programs]
        await self.terminal("releases", "upload", *names, "--channel", "stable", "--keys", str(self.folder / "keys"))

    def installed(self, program: str) -> str:
        record = load(InstallTarget(self.root, live=False).layout.record(program)).record
        return record.slots.current.version if record is not None else ""


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    async with cloud(folder / "cloud") as running, running.client() as client:
        terminal = Terminal(running, folder / "home")
        login = ("login", f"http://{running.address}", "--key-id", running.key[0])
        await terminal(*login, MACHINE_CLOUD_KEY=running.key[1])
        await terminal("releases", "init", "--keys", str(folder / "keys"))
        files = {name: write_release(folder / f"{name}-9", "9.5.0", script(name), program=name) for name in PROGRAMS}
        part = await new_part(running, client, folder)
        root = image(folder / "image")
        (root / sys.executable.lstrip("/")).unlink()
        yield World(running, terminal, files, part, root, folder)


async def test_without_a_published_release_the_installation_says_what_to_do(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        done = await made.preinstall("--agent", str(made.files[AGENT]))
        assert done.returncode == 1
        said = done.stderr.decode()
        assert "offers no release of machine-server for linux/" in said
        assert "publish one with `machine cloud releases upload`" in said
        assert made.part.secret not in said + done.stdout.decode()


async def test_the_release_of_machine_server_comes_from_the_cloud(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.publish(*PROGRAMS)
        root = ("--release-root", str(tmp_path / "keys/root.json"))
        done = await made.preinstall("--agent", str(made.files[AGENT]), *root)
        assert done.returncode == 0, done.stderr.decode()
        assert {name: made.installed(name) for name in PROGRAMS} == dict.fromkeys(PROGRAMS, "9.5.0")
        layout = InstallTarget(made.root, live=False).layout
        assert list(layout.downloads.iterdir()) == []
        assert (layout.trust / "pinned.json").read_bytes() == (tmp_path / "keys/root.json").read_bytes()


async def test_an_unsigned_file_is_refused_with_a_pinned_root(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.publish(SERVER)
        root = ("--release-root", str(tmp_path / "keys/root.json"))
        done = await made.preinstall("--agent", str(made.files[AGENT]), *root)
        assert done.returncode == 1
        assert "is not signed by the organization whose root.json is pinned" in done.stderr.decode()
        assert not list(InstallTarget(made.root, live=False).layout.releases(AGENT).iterdir())


async def test_a_cloud_that_cannot_be_reached_is_named_with_the_other_way(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.running.stop()
        done = await made.preinstall("--agent", str(made.files[AGENT]))
        assert done.returncode == 1
        assert f"the cloud at http://{made.running.address} cannot be reached" in done.stderr.decode()
        done = await made.preinstall(*(word for name in PROGRAMS for word in (OPTIONS[name], str(made.files[name]))))
        assert done.returncode == 0, done.stderr.decode()


async def test_the_commands_of_the_tutorial_prepare_a_card_for_another_processor(tmp_path: Path) -> None:
    """docs/tutorial/from-an-sd-card.md, with small release files, and a folder instead of the card."""
    async with world(tmp_path) as made:
        (made.root / "usr/lib/systemd/systemd").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00")
        for name in PROGRAMS:
            path = tmp_path / f"{name}-v0.1.0-aarch64"
            write_release(path, "0.1.0", "exit\n", program=name, on="linux/aarch64")
            keys = ("--keys", str(tmp_path / "keys"))
            await made.terminal("releases", "upload", str(path), "--channel", "stable", *keys)
        made.part.file = tmp_path / "rover.json"
        await made.terminal("new", "pi", "--output", str(made.part.file))
        foreign = ("--agent", str(made.files[AGENT]), "--server", str(tmp_path / f"{SERVER}-v0.1.0-aarch64"))
        done = await made.preinstall(*foreign)
        assert done.returncode == 1
        assert "and the system is linux/aarch64" in done.stderr.decode()
        files = [word for name in PROGRAMS for word in (OPTIONS[name], str(tmp_path / f"{name}-v0.1.0-aarch64"))]
        done = await made.preinstall(*files, "--release-root", str(tmp_path / "keys/root.json"))
        assert done.returncode == 0, done.stderr.decode()
        assert {name: made.installed(name) for name in PROGRAMS} == dict.fromkeys(PROGRAMS, "0.1.0")
        assert (made.root / "etc/machine.json").read_bytes() == made.part.file.read_bytes()


@pytest.mark.parametrize("trial", [True, False])
async def test_an_agent_on_trial_ends_if_it_cannot_use_the_credentials(tmp_path: Path, trial: bool) -> None:
    """Nothing else would end the trial, because only the agent itself judges its release."""
    layout, sha256 = Layout(tmp_path / "opt", tmp_path / "opt" / "run"), "a" * 64
    layout.release(AGENT, sha256).mkdir(parents=True)
    (layout.release(AGENT, sha256) / "run").write_text("#!/bin/sh\n")
    (layout.release(AGENT, sha256) / "run").chmod(0o755)
    point(layout, AGENT, run=sha256, back=None, trial=trial)
    (tmp_path / "mine.json").write_text("not JSON")
    command = [sys.executable, "-m", "agent.start", "--dev-mode", "--root", str(layout.root)]
    environment = {"MACHINE_RELEASE": sha256, "MACHINE_AGENT_CLOCK_SPEED": "1000"}
    process = await trio.lowlevel.open_process(
        [*command, "--config", str(tmp_path / "mine.json")], env={**os.environ, **environment}
    )
    try:
        with trio.move_on_after(START_LIMIT_S if trial else 5.0) as limit:
            assert await process.wait() == 1
        assert limit.cancelled_caught is not trial
    finally:
        if process.poll() is None:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
