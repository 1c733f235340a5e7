"""Run all tests except those of the rig, in one process more than there are processors: `python -m tests [ARGUMENTS]`.

A room is a folder of tests. Long rooms have a pytest process of their own, short ones share one; ARGUMENTS (`-k`, `-x`,
...) are passed to each. The output of a process is kept in build/tests and printed when the process ends: in full if a
test failed, otherwise only the skipped tests and the counts. At the end come the slowest tests, the seconds of each
room, and the rooms in which a test failed. Failed tests are not repeated. build/tests/junit.xml has all results.
MACHINE_TESTS_AT_ONCE sets the number of processes at a time.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from tests.timing import summary

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
OUTPUT: Final = ROOT / "build" / "tests"
APART: Final = ("hil",)  # run by python -m tests.hil
SECONDS: Final = {
    "unit/cloud": 788, "e2e/browser": 670, "e2e/agent": 490, "e2e/training": 479, "e2e/cloud": 452, "netns": 303,
    "unit/runtime": 235, "e2e/modules": 147, "e2e/rig": 129, "e2e/files": 125, "sim/jobs": 119, "sim/agent": 118,
    "unit/rpc": 114, "unit/training": 107, "e2e/module_api": 104, "e2e/sdk": 80, "sim/remotes": 75, "unit/agent": 75,
    "e2e/howto": 73, "e2e/options": 72, "sim/netmgr": 70, "e2e/server": 65, "e2e/access": 59, "unit/texts": 44,
    "sim/data_sync": 40, "unit/schema": 39, "e2e/maintenance": 39, "e2e/logs": 38, "unit/hal": 37,
    "unit/nursery_graph": 37, "unit/netmgr": 36, "sim/reconfigure": 36, "unit/running": 35, "e2e/typescript": 35,
    "unit/support": 29, "e2e/tour": 29, "sim/modules": 25, "e2e/remotes": 24, "e2e/hostile": 23, "fuzz": 19,
    "e2e/triggers": 17, "e2e/data": 17, "e2e/shutdown": 16, "sim/cloud_triggers": 12, "e2e/web": 12,
    "unit/telemetry": 12, "unit/triggers": 10, "e2e/port": 10, "e2e/interop": 6, "unit/command": 6,
    "sim/nursery_graph": 6, "unit/runtime_source": 5, "e2e/vision": 5, "e2e/netmgr": 5, "e2e/micro": 65, "wine": 100,
}  # fmt: skip
"""Seconds of rooms that take longer than USUAL, from the list at the end of a run. Only their ratio matters."""
USUAL: Final = 4
LONG: Final = 120  # seconds: longer rooms have a process of their own
TOGETHER: Final = 240  # seconds of short rooms for each process, which takes two seconds to start
AT_ONCE: Final = 4  # upper bound, unless MACHINE_TESTS_AT_ONCE is set
ROOM_LIMIT: Final = 1800.0  # seconds for a room; the longest takes a third of it with CI set
TIMED_OUT: Final = 124  # the exit status of timeout(1)
NOTHING_FOUND: Final = 5  # pytest's exit status when -k selects nothing


def compile_sources() -> None:
    """Compile the product's packages once for the hundreds of processes that load them.

    Where PYTHONDONTWRITEBYTECODE is set, each process compiles up to 270 modules, a third of machine-cloud's start.
    """
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent != HERE)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", *packages], cwd=ROOT, check=True)


@dataclass(slots=True)
class Run:
    """A pytest process; `status` is None until it ends."""

    name: str
    folders: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    limit: float = ROOM_LIMIT
    status: int | None = None
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def log(self) -> Path:
        return OUTPUT / f"{self.name}.log"

    @property
    def report(self) -> Path:
        return OUTPUT / f"{self.name}.xml"

    @property
    def good(self) -> bool:
        return self.status in (0, NOTHING_FOUND)


def rooms(tests: Path = HERE) -> list[str]:
    """Return the folders with tests, relative to `tests`: two levels deep, or one where a folder itself has tests."""
    names = []
    for step in sorted(path for path in tests.iterdir() if path.is_dir() and path.name not in APART):
        if any(step.glob("test_*.py")):
            names.append(step.name)
        else:
            names += sorted(f"{step.name}/{room.name}" for room in step.iterdir() if any(room.rglob("test_*.py")))
    return names


def runs(rooms: Sequence[str]) -> list[Run]:
    """Distribute rooms over processes, the longest first, so that no long one is left alone at the end."""
    shares: dict[str, list[str]] = {room.replace("/", "-"): [room] for room in rooms if _seconds(room) > LONG}
    rest = sorted((room for room in rooms if _seconds(room) <= LONG), key=lambda room: (-_seconds(room), room))
    parts = [list[str]() for _ in range(-(-sum(map(_seconds, rest)) // TOGETHER))]
    for room in rest:
        min(parts, key=_total).append(room)
    shares |= {f"rest-{number}": part for number, part in enumerate(parts, 1)}
    return [Run(name, tuple(share)) for name, share in sorted(shares.items(), key=lambda item: -_total(item[1]))]


def _seconds(room: str) -> int:
    return SECONDS.get(room, USUAL)


def _total(share: Sequence[str]) -> int:
    return sum(map(_seconds, share))


def heed_interrupts() -> None:
    """Restore the usual meaning of SIGINT for this process and its children.

    A shell starts a background job with SIGINT ignored, and programs inherit that: tests of Ctrl-C would fail.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def processor_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def counts_of(report: Path) -> Counter[str]:
    """Count passed, failed, errors and skipped tests in a report."""
    counts: Counter[str] = Counter()
    try:
        suites = list(ElementTree.parse(report).iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return counts
    for suite in suites:
        bad = {"failed": "failures", "errors": "errors", "skipped": "skipped"}
        counts.update({word: int(suite.get(key, 0)) for word, key in bad.items()})
        counts["passed"] += int(suite.get("tests", 0)) - sum(int(suite.get(key, 0)) for key in bad.values())
    return counts


def said(run: Run) -> str:
    """Return the text to print for a process that has ended."""
    lines = run.log.read_text(errors="replace").splitlines()
    if run.good:
        lines = [line for line in lines if line.startswith("SKIPPED")] + lines[-1:]
    return "\n".join([f"==> {' '.join(run.folders)} ({run.seconds:.0f} s, status {run.status})", *lines])


def merge(reports: Sequence[Path], into: Path) -> None:
    """Merge all reports into one file."""
    whole = ElementTree.Element("testsuites")
    for report in reports:
        try:
            whole.extend(ElementTree.parse(report).iter("testsuite"))
        except (OSError, ElementTree.ParseError):
            continue
    ElementTree.ElementTree(whole).write(into, encoding="utf-8", xml_declaration=True)


async def carry_out(run: Run, arguments: Sequence[str], turns: trio.CapacityLimiter) -> None:
    """Run pytest when it is this run's turn. Kill it after its limit and on cancellation."""
    async with turns:
        begin = time.monotonic()
        words = [sys.executable, "-m", "pytest", "-ra", *(f"tests/{folder}" for folder in run.folders)]
        run.status = TIMED_OUT
        with run.log.open("wb") as log, trio.move_on_after(run.limit):
            done = await trio.run_process(
                [*words, f"--junitxml={run.report}", *arguments],
                cwd=ROOT,
                env={**os.environ, **run.env},
                check=False,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            run.status = done.returncode
        run.seconds, run.counts = time.monotonic() - begin, counts_of(run.report)
        print(said(run), flush=True)


async def _in_turn(run: Run, arguments: Sequence[str], turns: trio.CapacityLimiter, ended: Callable[[], None]) -> None:
    await carry_out(run, arguments, turns)
    ended()


async def main(arguments: Sequence[str]) -> int:
    """Run all tests; return 0 if every run passed."""
    clear()
    return await carry_out_all(runs(rooms()), arguments, trio.CapacityLimiter(rooms_at_once()), OUTPUT / "junit.xml")


def clear() -> None:
    """Remove the results of earlier runs."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)


def rooms_at_once() -> int:
    """Return how many processes of rooms run at a time."""
    return max(1, int(os.environ.get("MACHINE_TESTS_AT_ONCE") or min(AT_ONCE, len(os.sched_getaffinity(0)) + 1)))


async def carry_out_all(
    every: Sequence[Run],
    arguments: Sequence[str],
    turns: trio.CapacityLimiter,
    report: Path,
    ended: Callable[[], None] = lambda: None,
) -> int:
    """Run everything and merge the results into `report`. Return 0 if every run passed and any test passed.

    `ended` is called when a run has ended.
    """
    begin, used = time.monotonic(), processor_seconds()
    async with trio.open_nursery() as nursery:
        for run in every:
            nursery.start_soon(_in_turn, run, arguments, turns, ended)
            await trio.lowlevel.checkpoint()  # makes tasks take their turns in the order of the list
    reports = [run.report for run in every]
    merge(reports, report)
    bad = [run for run in every if not run.good]
    total = sum((run.counts for run in every), Counter())
    print(summary(reports, [folder for run in every for folder in run.folders]))
    words = ", ".join(f"{total[key]} {key}" for key in ("failed", "passed", "skipped", "errors") if total[key])
    took, used = time.monotonic() - begin, processor_seconds() - used
    print(f"\n{words or 'no tests'} in {took:.0f} s; processors: {used:.0f} s", flush=True)
    for run in bad:
        print(f"failed: {' '.join(run.folders)}, see {run.log.relative_to(ROOT)}")
    return 0 if total["passed"] and not bad else 1


if __name__ == "__main__":
    heed_interrupts()
    compile_sources()
    raise SystemExit(trio.run(main, sys.argv[1:]))
