"""The commands of the installation as processes, and the agent that waits for credentials."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.e2e.harness import START_LIMIT_S, STOP_LIMIT_S

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
