"""Run failed tests once more by themselves.

A test that passes then is named in a last line `wavered: ...`: its result depends on how busy the computer is, which is
a defect of the test. A test that fails twice has failed.
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Final

FEW: Final = 10
"""More failures than that are no matter of time, unless all are of one file: it has one guest, or one server."""


def once_more(report: Path, root: Path) -> int:
    """Run the tests that failed according to a JUnit report once more, and name those that passed.

    Returns the exit status of pytest, or 1 at once if too many have failed.
    """
    again = failed(report)
    if not again or (len(again) > FEW and len({test.partition("::")[0] for test in again}) > 1):
        return 1
    print(f"\n{len(again)} failed and are run once more, by themselves:", *again, sep="\n  ", flush=True)
    second = report.with_name("again.xml")
    second.unlink(missing_ok=True)
    status = pytest([f"--junitxml={second.resolve()}", *again], root)
    print(wavered(again, failed(second) if second.exists() else again), flush=True)
    return status


def wavered(once: Sequence[str] = (), twice: Sequence[str] = ()) -> str:
    """The last line of a run: the tests that failed once, and passed by themselves."""
    return f"wavered: {', '.join(test for test in once if test not in twice) or 'none'}"


def pytest(arguments: Sequence[str], root: Path) -> int:
    """One run of pytest in the folder `root`; its exit status."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=root, check=False).returncode


def failed(report: Path) -> list[str]:
    """Return the ids of the tests that failed."""
    cases = ElementTree.parse(report).iter("testcase")
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return list(dict.fromkeys(map(id_of, bad)))


def id_of(case: ElementTree.Element) -> str:
    """Return the id of the test that a testcase of a JUnit report is about."""
    return f"{_place(case.get('classname', ''))}::{case.get('name')}"


def _place(dotted: str) -> str:
    """`tests.unit.test_a` or `tests.unit.test_a.TestModel` as a file, and a class in it."""
    words = dotted.split(".")
    last = next((at for at, word in enumerate(words) if word.startswith("test_")), len(words) - 1)
    return "::".join(["/".join(words[: last + 1]) + ".py", *words[last + 1 :]])
