"""Run the tests of the rig: `python -m tests.hil [PYTEST ARGUMENTS]`.

The guest's processor is emulated on a computer that does other things too, and real devices have real time limits: what
fails is run once more, by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.again import once_more, pytest
from tests.hil.image.places import BUILD


def main(arguments: Sequence[str]) -> int:
    """The exit status of pytest."""
    BUILD.mkdir(parents=True, exist_ok=True)
    report = BUILD / "junit.xml"
    report.unlink(missing_ok=True)
    status = pytest([f"--junitxml={report}", *(arguments or ["tests/hil"])], Path.cwd())
    return once_more(report, Path.cwd()) if status == 1 else status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
