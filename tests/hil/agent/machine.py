"""The machine in which an agent is installed: systemd is its first process, and /opt/machine is free."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hil.agent.releases import SOURCE
from tests.hil.rig.kinds import why_not_uml
from tests.hil.rig.uml_machine import UmlMachine


def agent_machine(source: str) -> UmlMachine:
    """Return the machine, not started. Skips where there is no User-Mode Linux: QEMU has no room at /opt/machine."""
    if reason := why_not_uml():
        pytest.skip(f"machine-agent is tested in User-Mode Linux: {reason}")
    return UmlMachine(Path(source), systemd=True, source=SOURCE)
