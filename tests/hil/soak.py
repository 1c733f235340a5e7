"""Start many guests and cut the power of many: `python -m tests.hil.soak [--guests 200] [--cuts 50]`.

Guests are started in turn on each of two processors, sent a request, and stopped; the times until the answer are
printed. Then files are written in one guest, with and without fsync(2), and the power is cut at once: after the next
boot the first kind must exist completely, and the second must be missing or empty. Exit status 1 if a guest hung or a
file was wrong. Has the same requirements as the tests of the rig; see README.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from tests.hil.image.places import BUILD, why_not_ready
from tests.hil.rig.guest import open_guest
from tests.hil.rig.kinds import new_machine, why_not_uml
from tests.hil.rig.source import share_source
from tests.hil.rig.uml_machine import PROCESSOR

SIZE: Final = 100_000  # bytes of a file
WRITER: Final = """
import os, sys
folder, number, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for kind in ("kept", "lost"):
    with open(f"{folder}/{kind}-{number}", "wb") as file:
        file.write(bytes([number % 256]) * size)
        if kind == "kept":
            file.flush()
            os.fsync(file.fileno())
            directory = os.open(folder, os.O_RDONLY)
            os.fsync(directory)
"""
CHECK: Final = "cd /root/cuts; for f in *; do echo $f $(stat -c %s $f) $(tr -d '\\{octal}' < $f | wc -c); done"


async def start_and_stop(share: Path, count: int) -> list[float]:
    """Start `count` guests in turn; return the seconds until each answered. AssertionError if one does not."""
    seconds = []
    for _ in range(count):
        begin = time.monotonic()
        with new_machine(share) as vm:
            async with open_guest(vm) as guest:
                await guest.run("echo word")
                seconds.append(time.monotonic() - begin)
    return seconds


async def cut_power(share: Path, count: int) -> list[str]:
    """Cut the power `count` times right after files were written; return the files that were wrong."""
    wrong = []
    with new_machine(share) as vm:
        async with open_guest(vm) as guest:
            for number in range(1, count + 1):
                await guest.run("mkdir -p /root/cuts; rm -f /root/cuts/*; sync")
                await guest.run(["python3", "-c", WRITER, "/root/cuts", str(number), str(SIZE)])
                await guest.power_cut()
                await guest.boot()
                listed = await guest.run(CHECK.format(octal=f"{number % 256:03o}"))
                sizes = {line.split()[0]: line.split()[1:] for line in listed.stdout.splitlines()}
                if sizes.pop(f"kept-{number}", None) != [str(SIZE), "0"]:
                    wrong.append(f"cut {number}: the file with fsync is not whole: {listed.stdout!r}")
                if any(size != "0" for size, _ in sizes.values()):
                    wrong.append(f"cut {number}: the file without fsync has content: {listed.stdout!r}")
    return wrong


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]


def in_process(arguments: list[str], processor: int) -> subprocess.Popen[str]:
    """Start a part of the work, with guests that stay on one processor."""
    command = [sys.executable, "-m", "tests.hil.soak", "--part", *arguments]
    return subprocess.Popen(command, env={**os.environ, PROCESSOR: str(processor)}, stdout=subprocess.PIPE, text=True)


def part(guests: int, cuts: int) -> int:
    """Do one part of the work and print a line for each result."""
    folder = BUILD / f"share-{os.getpid()}"
    share_source(folder)
    try:
        work: Callable[[], list[str]] = (
            (lambda: [f"started {seconds:.3f}" for seconds in trio.run(start_and_stop, folder, guests)])
            if guests
            else (lambda: [f"wrong {fault}" for fault in trio.run(cut_power, folder, cuts)])
        )
        print("\n".join(work()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def main() -> int:
    """Parse the command line, distribute the work and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.hil.soak", description="Start and cut many guests.")
    parser.add_argument("--guests", type=int, default=200, metavar="N", help="guests to start and stop [%(default)s]")
    parser.add_argument("--cuts", type=int, default=50, metavar="N", help="power cuts [%(default)s]")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        return part(options.guests, options.cuts)
    if reason := why_not_ready():
        sys.exit(reason)
    print(f"guests: {'QEMU, because ' + why_not_uml() if why_not_uml() else 'User-Mode Linux'}", flush=True)
    processors = sorted(os.sched_getaffinity(0))[:2]
    shares = [options.guests // len(processors)] * len(processors)
    shares[0] += options.guests - sum(shares)
    rounds = [[["--guests", str(n), "--cuts", "0"] for n in shares if n]]
    if options.cuts:
        rounds.append([["--guests", "0", "--cuts", str(options.cuts)]])
    lines, failed = list[str](), False
    for parts in rounds:
        running = [in_process(words, number) for words, number in zip(parts, processors, strict=False)]
        for process in running:
            out, _ = process.communicate()
            lines += out.splitlines()
            failed |= process.returncode != 0
    seconds = [float(line.split()[1]) for line in lines if line.startswith("started ")]
    wrong = [line.removeprefix("wrong ") for line in lines if line.startswith("wrong ")]
    if seconds:
        print(
            f"{len(seconds)} of {options.guests} guests started and stopped, {len(processors)} at a time: "
            f"p50 {statistics.median(seconds):.2f} s, p99 {percentile(seconds, 0.99):.2f} s, "
            f"longest {max(seconds):.2f} s"
        )
    if options.cuts:
        print(f"{options.cuts} power cuts: {len(wrong)} files not as they must be", *wrong, sep="\n")
    return int(failed or bool(wrong) or len(seconds) != options.guests)


if __name__ == "__main__":
    sys.exit(main())
