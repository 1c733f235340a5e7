"""Measure the processor time of commands of `machine`, against `python -c "import trio"` in the same run.

Each round runs every command once, so that all see the same load; the table has medians, and ratios of medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio

from tests.e2e.cloud.process import cloud
from tests.e2e.server.process import server

DOCUMENT: Final = {"components": [{"name": "thermometer", "api": "rdk:component:sensor", "model": "fake"}]}
MACHINE: Final = [sys.executable, "-c", "from command.cli import main; main()"]
COMMANDS: Final = (
    ("--help",),
    ("status",),
    ("resources",),
    ("call", "thermometer", "get_readings"),
    ("cloud", "machines"),
    ("cloud", "fragments", "ls"),
    ("cloud", "keys", "ls"),
)


def seconds(command: list[str], environment: Mapping[str, str]) -> float:
    """Return the processor time of a command that must succeed."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with status {process.returncode}")
    return used.ru_utime + used.ru_stime


async def measure(rounds: int) -> dict[tuple[str, ...], float]:
    """Return the median for `import trio`, with the key (), and for each command."""
    results: dict[tuple[str, ...], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server").mkdir()
        async with (
            cloud(folder / "cloud") as site,
            server(folder / "server", DOCUMENT, "-disable-mdns", running=True) as machine,
        ):
            environment = {
                "MACHINE_ADDRESS": machine.address,
                "MACHINE_CLOUD": f"http://{site.address}",
                "MACHINE_CLOUD_KEY_ID": site.key[0],
                "MACHINE_CLOUD_KEY": site.key[1],
            }
            for _ in range(rounds + 1):
                results[()].append(seconds([sys.executable, "-c", "import trio"], {}))
                for words in COMMANDS:
                    results[words].append(seconds([*MACHINE, *words], environment))
    return {words: statistics.median(taken[1:]) for words, taken in results.items()}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    medians = trio.run(measure, parser.parse_args(argv).rounds)
    base = medians[()]
    print(f"load {os.getloadavg()[0]:.1f}, import trio {1000 * base:.0f} ms of processor time")
    for words, taken in medians.items():
        if words:
            print(f"machine {' '.join(words):36} {1000 * taken:5.0f} ms  {taken / base:5.2f} x import trio")
    return 0
