"""Run the tests of the rig: `python -m tests.hil [PYTEST ARGUMENTS]`.

The guest's processor is emulated on a computer that does other things too, and real devices have real time limits. So
what fails is run once more, by itself, and both results are printed; it counts as failed if it fails again.
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.hil.image.places import BUILD

FEW = 10  # more failures than that are no matter of time


def main(arguments: Sequence[str]) -> int:
    """The exit status of pytest."""
    BUILD.mkdir(parents=True, exist_ok=True)
    report = BUILD / "junit.xml"
    report.unlink(missing_ok=True)
    status = run([f"--junitxml={report}", *(arguments or ["tests/hil"])])
    if status != 1:
        return status
    again = failed(report)
    if not 0 < len(again) <= FEW:
        return status
    print(f"\n{len(again)} failed and are run once more, by themselves:", *again, sep="\n  ", flush=True)
    return run(again)


def run(arguments: Iterable[str]) -> int:
    """One run of pytest."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], check=False).returncode


def failed(report: Path) -> list[str]:
    """The tests that failed, as pytest is told them."""
    cases = ElementTree.parse(report).iter("testcase")
    found = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return list(
        dict.fromkeys(f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}" for case in found)
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
