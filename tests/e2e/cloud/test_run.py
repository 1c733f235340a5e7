"""`make run`: starts a cloud and a joined machine, ready to use, and starts them again with the same data."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import trio

from tests.loopback import free_port

PROGRAM = Path(__file__).parents[3] / "examples" / "cloud_and_machine.py"


async def started(home: Path) -> tuple[str, str]:
    """Start, check that two links are printed, call the machine, stop; return the key and the output of `machine`."""
    environment = {**os.environ, "RUN_HOME": str(home), "PORT": str(free_port()), "CLOUD_PORT": str(free_port())}
    process = await trio.lowlevel.open_process(
        [sys.executable, str(PROGRAM)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    assert process.stdout is not None
    said = b""
    try:
        with trio.fail_after(60):
            while b"Stop them with Ctrl-C" not in said:
                piece = await process.stdout.receive_some()
                assert piece, said.decode() + logs(home)
                said += piece
        words = re.findall(r"export (.*)", (home / "env").read_text())
        variables = dict(word.split("=", 1) for line in words for word in line.split())
        done = await trio.run_process(
            [sys.executable, "-m", "command.cli", "cloud", "machines"],
            capture_stdout=True,
            stderr=subprocess.STDOUT,
            env={**environment, **variables},
            check=False,
        )
        process.send_signal(signal.SIGINT)
        with trio.fail_after(60):
            assert await process.wait() == 0
    finally:
        process.kill()
        await process.stdout.aclose()
    key, text = variables["MACHINE_CLOUD_KEY"], said.decode()
    assert key not in text
    ports = environment["CLOUD_PORT"], environment["PORT"]
    assert re.findall(r"http://localhost:(\d+)/login/link#[\w-]{32}\n", text) == [*ports], text
    return key, done.stdout.decode()


def logs(home: Path) -> str:
    """Return what both programs logged, for the message of a failed start."""
    return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')}" for path in sorted(home.glob("*.log")))


async def test_a_cloud_and_its_machine_start_and_stop_together(tmp_path: Path) -> None:
    key, shown = await started(tmp_path)
    assert re.search(r"^bench +online", shown, re.MULTILINE), shown
    assert oct((tmp_path / "env").stat().st_mode)[-3:] == oct((tmp_path / "cloud.log").stat().st_mode)[-3:] == "600"
    again, shown = await started(tmp_path)
    assert (again, len(re.findall("^bench +online", shown, re.MULTILINE))) == (key, 1)
