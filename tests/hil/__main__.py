"""Run the tests of the rig: `python -m tests.hil [PYTEST ARGUMENTS]`.

Test files are distributed over two pytest processes, each with its guests on a processor of its own. Where guests run
in QEMU, and with arguments, one process runs them in turn: an emulated guest uses both processors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from tests.__main__ import OUTPUT, Run, carry_out_all, heed_interrupts
from tests.hil.image.places import BUILD
from tests.hil.rig.kinds import why_not_uml
from tests.hil.rig.uml_machine import PROCESSOR

HERE: Final = Path(__file__).parent
REPORT: Final = BUILD / "junit.xml"
PARTS: Final = 2
PART_LIMIT: Final = 3600.0  # seconds for a part; guests in QEMU took 2,500 as a single part
USUAL: Final = 15  # seconds for a file that is not in SECONDS
SECONDS: Final = {
    "test_agent.py": 104, "test_agent_bad.py": 138, "test_agent_by_hand.py": 1, "test_agent_cuts.py": 1,
    "test_agent_held.py": 1, "test_agent_idle.py": 1, "test_agent_line.py": 34, "test_agent_pauses.py": 1,
    "test_air.py": 85, "test_bad_disks.py": 56, "test_board.py": 23, "test_capture_power_cut.py": 25,
    "test_chips.py": 113, "test_coexistence.py": 1, "test_discovery.py": 58, "test_gpio.py": 35,
    "test_gpio_models.py": 70, "test_i2c.py": 76, "test_jitter.py": 32, "test_logs_power_cut.py": 23,
    "test_network.py": 59, "test_network_attacks.py": 1, "test_network_changes.py": 1, "test_network_faults.py": 1,
    "test_network_restart.py": 1, "test_owners.py": 81, "test_power_cut.py": 25, "test_raspberry_pi.py": 88,
    "test_rig.py": 45, "test_serial.py": 50, "test_spi.py": 36, "test_system_configuration.py": 51,
    "test_systemd.py": 28, "test_training_groups.py": 40, "test_udev.py": 29, "test_usb_port.py": 24,
    "test_video.py": 31, "test_wifi.py": 85, "test_wifi_enterprise.py": 1,
}  # fmt: skip
"""Durations of files that take longer than USUAL, on a computer with two processors. Only their ratio matters."""

EMULATED: Final = frozenset(
    {
        *("test_chips.py", "test_discovery.py", "test_i2c.py"),
        *("test_raspberry_pi.py", "test_rig.py", "test_spi.py"),
    }
)
"""Files with guests in QEMU: in the same part, so that only one such guest runs at a time."""


def share_out(files: Sequence[str], parts: int) -> list[list[str]]:
    """Distribute files over parts of similar duration: the longest first, each to the part with the least."""
    shares: list[list[str]] = [[] for _ in range(parts)]
    loads = [0] * parts
    for name in sorted(files, key=lambda name: (name not in EMULATED, -SECONDS.get(name, USUAL), name)):
        least = 0 if name in EMULATED else loads.index(min(loads))
        shares[least].append(name)
        loads[least] += SECONDS.get(name, USUAL)
    return shares


def parts() -> list[Run]:
    """Return the runs of all files: side by side on two processors, or a single one where guests run in QEMU."""
    processors = sorted(os.sched_getaffinity(0))[:PARTS]
    if len(processors) < PARTS or why_not_uml():
        return [Run("hil", ("hil",), limit=PART_LIMIT)]
    shares = share_out(sorted(path.name for path in HERE.glob("test_*.py")), len(processors))
    return [
        Run(f"hil-{number}", tuple(f"hil/{name}" for name in share), {PROCESSOR: str(number)}, PART_LIMIT)
        for number, share in zip(processors, shares, strict=True)
    ]


def main(arguments: Sequence[str]) -> int:
    """Return the exit status."""
    BUILD.mkdir(parents=True, exist_ok=True)
    REPORT.unlink(missing_ok=True)
    if arguments:
        words = [sys.executable, "-m", "pytest", "-q", f"--junitxml={REPORT}", *arguments]
        return subprocess.run(words, check=False).returncode
    OUTPUT.mkdir(parents=True, exist_ok=True)
    return trio.run(carry_out_all, parts(), (), trio.CapacityLimiter(PARTS), REPORT)


if __name__ == "__main__":
    heed_interrupts()
    raise SystemExit(main(sys.argv[1:]))
