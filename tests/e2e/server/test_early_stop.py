"""A signal during the imports of a program stops it in order: code 0, a last message, the profile written."""

from __future__ import annotations

import json
import os
import pstats
import subprocess
import sys
from pathlib import Path

import pytest

EARLY = """
import os, signal, sys

class Killer:
    def find_spec(self, name, path=None, target=None):
        if name == early:
            sys.meta_path.remove(self)
            for number in signals:
                os.kill(os.getpid(), number)

program, early, signals = sys.argv[1], sys.argv[2], [int(text) for text in sys.argv[3].split(",")]
sys.argv = [program, *sys.argv[4:]]
sys.meta_path.insert(0, Killer())
__import__(f"{program}.start", fromlist=["main"]).main()
"""


def stopped(folder: Path, program: str, early: str, signals: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program that gets `signals` when it begins to import `early`."""
    return subprocess.run(
        [sys.executable, "-c", EARLY, program, early, signals, *options],
        env={**os.environ, "MACHINE_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("early", "number"), [("click", 15), ("runtime.server.app", 15), ("trio", 2)])
def test_machine_server(tmp_path: Path, early: str, number: int) -> None:
    config, profile = tmp_path / "machine.json", tmp_path / "profile"
    config.write_text(json.dumps({"network": {"bind_address": "127.0.0.1:0"}}))
    done = stopped(
        tmp_path,
        "runtime.server",
        early,
        str(number),
        "-config",
        str(config),
        "-disable-mdns",
        "-cpuprofile",
        str(profile),
    )
    assert done.returncode == 0, done.stderr
    assert f"received {'SIGTERM' if number == 15 else 'SIGINT'}" in done.stdout
    assert "\tstopped\t" in done.stdout
    assert pstats.Stats(str(profile)).total_calls > 0


def test_machine_cloud(tmp_path: Path) -> None:
    folder = str(tmp_path / "cloud")
    done = stopped(tmp_path, "cloud.server", "cloud.server.app", "15", "--data", folder, "--listen", "127.0.0.1:0")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_signal_ends_the_server_immediately(tmp_path: Path) -> None:
    config = tmp_path / "machine.json"
    config.write_text("{}")
    assert stopped(tmp_path, "runtime.server", "runtime.server.app", "15,15", "-config", str(config)).returncode == -15


def test_a_command_that_ignores_a_signal_is_killed(tmp_path: Path) -> None:
    assert stopped(tmp_path, "runtime.server", "click", "15", "-version").returncode == -15
