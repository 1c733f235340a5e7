"""Run all tests but those of the rig, as many rooms at a time as there are processors: `python -m tests [ARGUMENTS]`.

A room is a folder of tests with a pytest of its own; ARGUMENTS are for each of them (`-k`, `-x`, ...). What a room says
is kept in build/tests, and printed in one piece when it ends: the whole of it if something failed, otherwise what was
skipped and the counts. What has failed is run once more, by itself. build/tests/junit.xml has all results.
MACHINE_TESTS_AT_ONCE is the number of rooms at a time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from tests.again import once_more

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
OUTPUT: Final = ROOT / "build" / "tests"
APART: Final = ("hil",)  # python -m tests.hil
LONG: Final = ("e2e/cloud", "e2e/module_api", "unit/cloud", "e2e/modules", "e2e/access", "sim/cloud_triggers")
"""Rooms that take longest begin first, so that none of them is left alone at the end."""
TOGETHER: Final = 10  # other rooms for one process, which takes two seconds to begin
AT_ONCE: Final = 4  # at most, unless asked for
ROOM_LIMIT: Final = 1800.0  # seconds for a room; the longest takes a third of it where everything is judged
TIMED_OUT: Final = 124  # the status that timeout(1) gives
FAILED: Final = 1  # pytest's exit status when tests have failed
NOTHING_FOUND: Final = 5  # and when -k has left nothing


@dataclass(slots=True)
class Run:
    """One process of pytest; `status` when it has ended."""

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
    """Every folder that has tests, relative to `tests`: two levels deep, or one if the tests are there."""
    found = []
    for step in sorted(path for path in tests.iterdir() if path.is_dir() and path.name not in APART):
        if any(step.glob("test_*.py")):
            found.append(step.name)
        else:
            found += sorted(f"{step.name}/{room.name}" for room in step.iterdir() if any(room.rglob("test_*.py")))
    return found


def runs(found: Sequence[str]) -> list[Run]:
    """Long rooms first, each alone; then the others, neighbours in different processes."""
    long = [room for room in LONG if room in found]
    rest = [room for room in found if room not in long]
    parts = -(-len(rest) // TOGETHER)
    together = [Run(f"rest-{part + 1}", tuple(rest[part::parts])) for part in range(parts)]
    return [*(Run(room.replace("/", "-"), (room,)) for room in long), *together]


def counts_of(report: Path) -> Counter[str]:
    """passed, failed, errors, skipped."""
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
    """What is printed of a run that has ended."""
    lines = run.log.read_text(errors="replace").splitlines()
    if run.good:
        lines = [line for line in lines if line.startswith("SKIPPED")] + lines[-1:]
    return "\n".join([f"==> {' '.join(run.folders)} ({run.seconds:.0f} s, status {run.status})", *lines])


def merge(reports: Sequence[Path], into: Path) -> None:
    """All reports as one."""
    whole = ElementTree.Element("testsuites")
    for report in reports:
        try:
            whole.extend(ElementTree.parse(report).iter("testsuite"))
        except (OSError, ElementTree.ParseError):
            continue
    ElementTree.ElementTree(whole).write(into, encoding="utf-8", xml_declaration=True)


async def carry_out(run: Run, arguments: Sequence[str], turns: trio.Semaphore) -> None:
    """One process of pytest from its turn on; it is killed after its limit, and when this is cancelled."""
    async with turns:
        begin = time.monotonic()
        words = [sys.executable, "-m", "pytest", "-ra", *(f"tests/{one}" for one in run.folders)]
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


async def main(arguments: Sequence[str]) -> int:
    """0 if every room was good."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    at_once = int(os.environ.get("MACHINE_TESTS_AT_ONCE") or min(AT_ONCE, len(os.sched_getaffinity(0))))
    return await carry_out_all(runs(rooms()), arguments, max(1, at_once), OUTPUT / "junit.xml")


async def carry_out_all(every: Sequence[Run], arguments: Sequence[str], at_once: int, report: Path) -> int:
    """Carry out all runs, write `report` of all results, and repeat failures by themselves: 0 if all is well then."""
    turns, begin = trio.Semaphore(at_once), time.monotonic()
    async with trio.open_nursery() as nursery:
        for run in every:
            nursery.start_soon(carry_out, run, arguments, turns)
            await trio.lowlevel.checkpoint()  # the order of the turns is that of the list
    merge([run.report for run in every], report)
    bad = [run for run in every if not run.good]
    total = sum((run.counts for run in every), Counter())
    words = ", ".join(f"{total[key]} {key}" for key in ("failed", "passed", "skipped", "errors") if total[key])
    print(f"\n{words or 'no tests'} in {time.monotonic() - begin:.0f} s, {at_once} rooms at a time", flush=True)
    for run in bad:
        print(f"failed: {' '.join(run.folders)}, see {run.log.relative_to(ROOT)}")
    if not total["passed"] or any(run.status != FAILED for run in bad):
        return 1
    return once_more(report, ROOT) if bad else 0


if __name__ == "__main__":
    raise SystemExit(trio.run(main, sys.argv[1:]))
