"""Measure machine-agent with a real cloud on this computer: start-up time, resident memory, idle CPU.

`python -m bench agent [--rounds 3] [--idle 60]`

The agent runs in --dev-mode and supervises machine-server without resources. `python -c "import trio"` and the start of
machine-server by hand are measured in the same run, because absolute figures depend on the computer. Idle CPU is that
of the agent alone, from the kernel's accounting in nanoseconds; the cloud answers with its usual intervals.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio

from bench.footprint import ROOT, bare, first_answer, free_port, resident_mib
from tests.e2e.agent.support import agent, new_part
from tests.e2e.cloud.process import cloud

BUDGETS = {
    "agent: answers on its socket s": "",
    "agent: connected to the cloud s": "",
    "machine-server, started by the agent: serves s": "",
    "machine-server, started by hand: first answer s": "",
    "import trio s": "",
    "agent: resident MiB": "45",
    "agent: idle CPU %": "0.1",
}


def cpu_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def by_hand(folder: Path) -> float:
    """Return the seconds until a machine-server without an agent answers."""
    port = free_port()
    file = folder / "bare.json"
    file.write_text(json.dumps({"network": {"bind_address": f"localhost:{port}"}}))
    begin = time.monotonic()
    server = subprocess.Popen(
        [sys.executable, "-m", "runtime.server.cli", "-config", str(file)], cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        first_answer(port, begin + 20)
        return time.monotonic() - begin
    finally:
        server.terminate()
        server.wait(30)


async def measure(folder: Path, idle: float) -> dict[str, float]:
    """Run a cloud and an agent; return the figures."""
    async with cloud(folder / "cloud") as running, running.client() as client:
        part = await new_part(running, client, folder)
        begin = time.monotonic()
        async with agent(folder, part.file) as measured:
            answers = time.monotonic() - begin
            await measured.status_until(lambda status: not status.get("offline"))
            connected = time.monotonic() - begin
            await measured.serving()
            serves = time.monotonic() - begin
            await trio.sleep(10)  # what happens once after the start is not idle
            pid = measured.process.pid
            before, clock = cpu_seconds(pid), time.monotonic()
            await trio.sleep(idle)
            percent = 100 * (cpu_seconds(pid) - before) / (time.monotonic() - clock)
            return dict(zip(BUDGETS, (answers, connected, serves, 0, 0, resident_mib(pid), percent), strict=True))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench agent", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", type=float, default=60, help="seconds during which idle CPU is measured")
    options = parser.parse_args(argv)
    bare()  # warm the file cache
    rows = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            row = trio.run(measure, Path(folder), options.idle)
            row["machine-server, started by hand: first answer s"] = by_hand(Path(folder))
            row["import trio s"] = bare()
        rows.append(row)
    print(f"medians of {options.rounds} rounds; budget in brackets")
    for key, budget in BUDGETS.items():
        print(f"  {key:48} {statistics.median(row[key] for row in rows):8.3f}   {f'[{budget}]' if budget else ''}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
