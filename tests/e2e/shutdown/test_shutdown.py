"""A real process with 200 nodes is stopped in order by SIGTERM, by Ctrl-C and by an external deadline."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.shutdown.victim import CRASHING, HUNG, SIZE, STOP_TIMEOUT, THREAD, THREAD_SECONDS

pytestmark = pytest.mark.slow


async def shut_down(cause: str, path: Path, seed: int) -> tuple[int, list[dict[str, Any]]]:
    """Start the process, end it by `cause`; return its status and what it wrote."""
    deadline = "0.2" if cause == "deadline" else "0"
    command = [sys.executable, "-m", "tests.e2e.shutdown.victim", str(path), str(seed), deadline]
    with trio.fail_after(60):
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout is not None
        try:
            said = b""
            while b"ready\n" not in said:
                data = await process.stdout.receive_some()
                assert data, "it ended before it was ready"
                said += data
            if cause != "deadline":
                process.send_signal(signal.SIGTERM if cause == "sigterm" else signal.SIGINT)
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.stdout.aclose()
    return status, [json.loads(line) for line in (await trio.Path(path).read_text()).splitlines()]


@pytest.mark.parametrize(("cause", "seed"), [("sigterm", 1), ("ctrl-c", 2), ("deadline", 3)])
async def test_a_real_process_stops_in_dependency_order(cause: str, seed: int, tmp_path: Path) -> None:
    status, log = await shut_down(cause, tmp_path / "log", seed)
    assert status == (130 if cause == "ctrl-c" else 0)
    requires = {entry["name"]: entry["requires"] for entry in log if entry["what"] == "node"}
    assert len(requires) == SIZE

    ready = next(entry for entry in log if entry["what"] == "ready")
    begin = next(e for e in log if e["what"] == "transition" and e["after"] == "removing" and "graph" in e["reason"])
    assert begin["at"] >= ready["at"]
    after = [entry for entry in log if entry["at"] >= begin["at"]]
    cancelled: dict[str, float] = {}
    ended: dict[str, float] = {}
    overdue: dict[str, str] = {}
    for entry in after:
        name = entry.get("name", "")
        if entry["what"] == "cancelled":
            cancelled[name] = entry["at"]
        elif entry["what"] == "end":
            ended[name] = entry["at"]
        elif entry["what"] == "transition" and "still running" in entry["reason"]:
            overdue.setdefault(name, entry["reason"])
        assert entry["what"] != "begin", "a node was started during the shutdown"

    # Every node has ended, dependents first; the two that do not stop were named and then abandoned.
    running = {e["name"] for e in log if e["what"] == "begin"} - {e["name"] for e in log if e["what"] == "end"}
    assert running == set()
    assert overdue.keys() == {HUNG, THREAD}
    assert "victim.py" in overdue[HUNG]
    assert "to_thread" in overdue[THREAD] or "victim.py" in overdue[THREAD]
    checked = 0
    for name, dependencies in requires.items():
        for dependency in dependencies:
            if name in ended and dependency in cancelled and name not in (HUNG, THREAD):
                assert ended[name] <= cancelled[dependency], f"{dependency} was cancelled before {name} had ended"
                checked += 1
    assert checked > SIZE / 2

    # Limits: the dependencies of the two are stopped after the limit, long before the two end.
    for dependency in requires[HUNG]:
        assert begin["at"] + STOP_TIMEOUT <= cancelled[dependency] < begin["at"] + THREAD_SECONDS
    last_orderly = max(at for name, at in ended.items() if name not in (HUNG, THREAD))
    assert last_orderly < begin["at"] + 4 * STOP_TIMEOUT
    assert log[-1]["at"] < begin["at"] + 3 * THREAD_SECONDS
    assert any(e["what"] == "transition" and e["name"] == CRASHING and "RuntimeError" in e["reason"] for e in log)
