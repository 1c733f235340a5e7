"""Choose the kind of guest for a test: User-Mode Linux where possible, QEMU otherwise and where a test requires it.

Marks state what a test or module requires: `qemu(reason)` for another processor, chipset or QEMU's own functions,
`systemd` for systemd as the first process. MACHINE_HIL_GUEST=qemu selects QEMU for everything.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Final

import pytest

from tests.hil.image.places import IMAGE, built_from
from tests.hil.rig.qemu_machine import QemuMachine
from tests.hil.rig.uml_machine import UmlMachine, failed_trial
from tests.hil.rig.vm import VirtualMachine
from tests.hil.uml.kernel import KERNEL, why_not_startable

CHOICE: Final = "MACHINE_HIL_GUEST"


@functools.cache
def why_not_uml() -> str:
    """Return why guests run in QEMU here; empty if they run in User-Mode Linux."""
    if os.environ.get(CHOICE, "uml") != "uml":
        return f"{CHOICE} is {os.environ[CHOICE]!r}"
    if not (IMAGE / KERNEL).exists():
        return built_from().get("uml_error") or "the image has no kernel of User-Mode Linux: run `make hil`"
    return why_not_startable() or failed_trial()


def new_machine(share: Path, node: pytest.Collector | None = None) -> VirtualMachine:
    """Create a machine of the kind that the marks of a test file require; it is not started."""
    if why_not_uml() or (node is not None and node.get_closest_marker("qemu")):
        return QemuMachine(share)
    return UmlMachine(share, systemd=node is not None and node.get_closest_marker("systemd") is not None)
