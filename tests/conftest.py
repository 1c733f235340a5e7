"""Set up all tests: Hypothesis, repeatable where a change is judged; a time limit for each; temporary files in RAM."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from trio.testing import MockClock

from support.foreign.removal import remove
from tests.limit import pytest_collection_modifyitems, pytest_runtest_call

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("judged", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("judged" if os.environ.get("CI") else "default")

__all__ = ["pytest_collection_modifyitems", "pytest_runtest_call"]
MEMORY: Final = Path("/dev/shm")
ENOUGH: Final = 4 << 30  # free bytes required in MEMORY
PREFIX: Final = "mt-"  # short, because the path of a Unix socket is limited to 107 bytes
FOLDER: Final = pytest.StashKey[Path]()


@pytest.fixture
def autojump_clock(monkeypatch: pytest.MonkeyPatch) -> MockClock:
    """Return a virtual clock that jumps when every task waits. Threads end in real time: they get no closing limit."""
    monkeypatch.setattr("support.worker.CLOSING_LIMIT", math.inf)
    return MockClock(autojump_threshold=0)


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files of tests and their children in memory, unless TMPDIR or --basetemp is set.

    Thousands of tests sync to the disk, which proves nothing here: tests/hil checks what a power cut leaves.
    """
    if "TMPDIR" in os.environ or config.option.basetemp is not None or not _roomy():
        return
    for folder in MEMORY.glob(f"{PREFIX}*"):  # left by runs that were killed or that failed
        if not Path("/proc", folder.name.removeprefix(PREFIX)).exists():
            remove(folder)  # a failed test may leave folders of any depth
    folder = MEMORY / f"{PREFIX}{os.getpid()}"
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    config.stash[FOLDER] = folder
    config.option.basetemp = str(folder / "t")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "tmp")


def _roomy() -> bool:
    try:
        memory = os.statvfs(MEMORY)
    except OSError:
        return False
    usable = os.access(MEMORY, os.W_OK) and not memory.f_flag & os.ST_NOEXEC
    return usable and memory.f_bavail * memory.f_frsize >= ENOUGH


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove temporary files after a run without failures; otherwise keep them until the next run."""
    folder = session.config.stash.get(FOLDER, None)
    if folder is not None and exitstatus == pytest.ExitCode.OK:
        remove(folder)
