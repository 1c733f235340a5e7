"""Hours of a micro server, in simulated time on MicroPython, take no memory: 24 with MACHINE_TESTS_ALL, else 6."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.e2e.micro.program import FIRMWARE, words_of
from tests.scope import selected


def test_hours_leave_nothing_behind(tmp_path: Path) -> None:
    script = shutil.copy(Path(__file__).with_name("soak.py"), tmp_path)
    hours_long = 24 if selected() else 6
    command = [*words_of(FIRMWARE, "96k"), str(script), str(hours_long)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    hours = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(hours) == hours_long
    used = [figures[0] for figures in hours]
    print(used)
    assert min(used[-3:]) <= min(used[:3]) + 512, "the heap grows"
    assert hours[-1][2] > 500 * hours_long, "calls were answered"
    assert {figures[1] for figures in hours} == {hours[0][1]}, "a request was not given back"
