"""Measure machine-agent with a real cloud on this computer: start-up time, memory, idle CPU.

`python -m bench agent [--rounds 3] [--idle 60] [--plain] [--release FILE]`

The cloud uses TLS with a certificate of its own authority, as most clouds do; `--plain` leaves TLS out. The agent runs
in --dev-mode with every feature that is on by default there: settings, reports, its log, supervision of machine-server
without resources, and requests of people. It does not configure the system. `--release` measures the agent of a
release file, with the interpreter and the libraries that devices use.

`python -c "import trio"` and the start of machine-server by hand are measured in the same run, because absolute
figures depend on the computer. Idle CPU is that of the agent alone, from the kernel's accounting in nanoseconds; the
cloud answers with its usual intervals. Resident memory (Rss) includes all pages of libraries that other processes
share; Pss divides these by the number of processes, among them machine-server; private memory leaves them out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from bench.footprint import ROOT, bare, first_answer, free_port
from tests.e2e.agent.support import THIS_AGENT, agent, new_part
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_certificates import Secured

BUDGETS = {
    "agent: answers on its socket s": "",
    "agent: connected to the cloud s": "",
    "machine-server, started by the agent: serves s": "",
    "agent: idle CPU %": "0.1",
    "agent: Rss MiB": "45",
    "agent: Pss MiB": "",
    "agent: private MiB": "",
    "machine-server, started by hand: first answer s": "",
    "import trio s": "",
}
SETTLING = 10.0  # seconds; what happens once after the start is not idle


def cpu_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def memory_mib(pid: int) -> tuple[float, float, float]:
    """Return the resident, the proportional and the private memory of a process."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return sizes["Rss"], sizes["Pss"], sizes["Private_Clean"] + sizes["Private_Dirty"]


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


async def measure(folder: Path, idle: float, program: Sequence[str], *, tls: bool) -> dict[str, float]:
    """Run a cloud and an agent; return the figures."""
    async with cloud(folder / "cloud", *(["--tls"] if tls else [])) as running:
        if tls:
            file = await secured_part(Secured(running, folder))
        else:
            async with running.client() as client:
                file = (await new_part(running, client, folder)).file
        begin = time.monotonic()
        async with agent(folder, file, program=program) as measured:
            answers = time.monotonic() - begin
            await measured.status_until(lambda status: not status.get("offline"))
            connected = time.monotonic() - begin
            await measured.serving()
            serves = time.monotonic() - begin
            await trio.sleep(SETTLING)
            pid = measured.process.pid
            before, clock = cpu_seconds(pid), time.monotonic()
            await trio.sleep(idle)
            percent = 100 * (cpu_seconds(pid) - before) / (time.monotonic() - clock)
            return dict(zip(BUDGETS, (answers, connected, serves, percent, *memory_mib(pid)), strict=False))


async def secured_part(secured: Secured) -> Path:
    """Create a machine in a cloud with TLS; return the file with its credentials, which name the cloud's authority."""
    secured.trust()
    await secured.join(network={"bind_address": "localhost:0"})
    file = secured.machine_folder / "machine.json"
    file.touch(0o600)
    # machine-server chooses a free port before it has its configuration from the cloud; then it opens another one, with
    # the cloud's certificate: requests of the agent to it use TLS, as on a device.
    file.write_text(json.dumps({"cloud": secured.credentials, "network": {"bind_address": "127.0.0.1:0"}}))
    return file


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench agent", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", type=float, default=60, help="seconds during which idle CPU is measured")
    parser.add_argument("--plain", action="store_true", help="measure with a cloud without TLS")
    parser.add_argument("--release", type=Path, help="measure the agent of this release file")
    options = parser.parse_args(argv)
    program = (str(options.release.resolve()),) if options.release else THIS_AGENT
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):  # a device has the authorities of its system
        os.environ.pop(name, None)
    bare()  # warm the file cache
    rows = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            row = trio.run(lambda: measure(Path(folder), options.idle, program, tls=not options.plain))
            row["machine-server, started by hand: first answer s"] = by_hand(Path(folder))
            row["import trio s"] = bare()
        rows.append(row)
    print(f"medians of {options.rounds} rounds, with the lowest and the highest; budget in brackets")
    for key, budget in BUDGETS.items():
        values = [row[key] for row in rows]
        spread = f"{min(values):.3f} … {max(values):.3f}"
        print(f"  {key:48} {statistics.median(values):8.3f}  {spread:20} {f'[{budget}]' if budget else ''}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
