"""Resource limits of modules, and the measured use of real processes."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.parts.modules.limits import MIB, OOM_ADJUSTMENT, ProcessUsage, exceeded, keep, usage
from schema.document.modules import ModuleLimits


@given(memory=st.integers(0, 10_000), processes=st.integers(0, 1000))
def test_without_limits_nothing_is_exceeded(memory: int, processes: int) -> None:
    assert exceeded(ModuleLimits(), ProcessUsage(memory * MIB, processes)) == ""


@pytest.mark.parametrize(
    ("limits", "used", "words"),
    [
        (ModuleLimits(memory_mb=100), ProcessUsage(100 * MIB, 5), ""),
        (ModuleLimits(memory_mb=9), ProcessUsage(10 * MIB, 5), "10 MiB of memory, more than limits.memory_mb = 9"),
        (ModuleLimits(processes=5), ProcessUsage(0, 5), ""),
        (ModuleLimits(processes=5), ProcessUsage(0, 6), "6 processes and threads, more than limits.processes = 5"),
    ],
)  # fmt: skip
def test_a_limit_is_what_may_be_used(limits: ModuleLimits, used: ProcessUsage, words: str) -> None:
    problem = exceeded(limits, used).removeprefix("it uses ").removeprefix("it has ")
    assert problem == words


def test_a_process_with_its_children_is_measured_and_kept() -> None:
    program = (
        "import subprocess, sys, threading, time\n"
        "held = b'x' * 30_000_000\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
        "child.kill()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        keep(process.pid, ModuleLimits(open_files=50, nice=7))
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        used = usage(process.pid)
        assert used.processes == 3  # the process with its thread, and a child
        assert 30_000_000 < used.memory < 200_000_000
        about = psutil.Process(process.pid)
        assert about.rlimit(psutil.RLIMIT_NOFILE) == (50, 50)
        assert about.nice() == max(7, os.getpriority(os.PRIO_PROCESS, 0))
        with open(f"/proc/{process.pid}/oom_score_adj") as file:
            assert int(file.read()) >= OOM_ADJUSTMENT
        process.communicate()
    keep(process.pid, ModuleLimits(open_files=50, nice=7))  # the process has ended
    assert usage(process.pid) == ProcessUsage()
