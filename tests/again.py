"""What failed beside other work, run once more by itself: both results are printed.

A computer that does other things is late now and then; what fails because of that alone passes by itself, and is named
as wavering, so that somebody looks at it. What fails again has failed.
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
    """Run what has failed by a JUnit report, in `root`; the status of pytest, or 1 at once if too much has failed."""
    again = failed(report)
    if not again or (len(again) > FEW and len({test.partition("::")[0] for test in again}) > 1):
        return 1
    print(f"\n{len(again)} failed and are run once more, by themselves:", *again, sep="\n  ", flush=True)
    status = pytest(again, root)
    if status == 0:
        print("they wavered: failed beside other work, passed by themselves", flush=True)
    return status


def pytest(arguments: Sequence[str], root: Path) -> int:
    """One run of pytest in the folder `root`; its exit status."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=root, check=False).returncode


def failed(report: Path) -> list[str]:
    """The tests that failed, as pytest is told them."""
    cases = ElementTree.parse(report).iter("testcase")
    found = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return list(dict.fromkeys(f"{_place(case.get('classname', ''))}::{case.get('name')}" for case in found))


def _place(dotted: str) -> str:
    """`tests.unit.test_a` or `tests.unit.test_a.TestModel` as a file, and a class in it."""
    words = dotted.split(".")
    last = next((at for at, word in enumerate(words) if word.startswith("test_")), len(words) - 1)
    return "::".join(["/".join(words[: last + 1]) + ".py", *words[last + 1 :]])
