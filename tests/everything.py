"""Run every test, as `make test` does: `python -m tests.everything`.

The guests of the rig are built while the first rooms run. Then the tests of the rig run beside the rooms, all parts at
once, with one process of rooms less for each part but the first. A part that ends makes room for another process. The
number of processes stays the same, so the last of them end at about the same time.
"""

from __future__ import annotations

import subprocess
from typing import Final

import trio

from tests.__main__ import (
    OUTPUT,
    ROOT,
    carry_out_all,
    clear,
    compile_sources,
    heed_interrupts,
    rooms,
    rooms_at_once,
    runs,
)
from tests.hil.__main__ import REPORT, parts
from tests.hil.image.places import BUILD

SHOWN: Final = 20  # lines of what building the guests has printed, if it failed


async def build_guests() -> None:
    """Build the guests of the rig, with lower priority; print why that failed."""
    log = BUILD / "make.log"
    BUILD.mkdir(parents=True, exist_ok=True)
    print(f"Building the guests of the hardware rig while the first tests run: {log}", flush=True)
    with log.open("wb") as file:
        words = ["nice", "-n", "5", "make", "-s", "hil"]
        done = await trio.run_process(words, cwd=ROOT, check=False, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        lines = log.read_text(errors="replace").splitlines()[-SHOWN:]
        print("\n".join([*lines, "Going on without the hardware rig; its tests say why they are skipped."]), flush=True)


async def build_micropython() -> None:
    """Build MicroPython before tests/e2e/micro needs it; its tests build it themselves, or say why they are skipped."""
    await trio.run_process(["nice", "-n", "5", "make", "-s", "micro"], cwd=ROOT, check=False, capture_stdout=True)


async def build_wine() -> None:
    """Build the room for Windows programs before tests/wine needs it; its tests wait, or say why they are skipped."""
    await trio.run_process(["nice", "-n", "5", "make", "-s", "wine"], cwd=ROOT, check=False, capture_stdout=True)


async def main() -> int:
    """Return 0 if everything passed."""
    clear()
    statuses: dict[str, int] = {}
    turns = trio.CapacityLimiter(rooms_at_once())

    def part_ended() -> None:
        turns.total_tokens += 1

    async def rig() -> None:
        await build_guests()
        every = parts()
        turns.total_tokens = max(1, turns.total_tokens + 1 - len(every))
        statuses["rig"] = await carry_out_all(every, (), trio.CapacityLimiter(len(every)), REPORT, part_ended)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig)
        nursery.start_soon(build_micropython)
        nursery.start_soon(build_wine)
        statuses["rooms"] = await carry_out_all(runs(rooms()), (), turns, OUTPUT / "junit.xml")
    return max(statuses.values())


if __name__ == "__main__":
    heed_interrupts()
    compile_sources()
    raise SystemExit(trio.run(main))
