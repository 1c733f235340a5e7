"""Which kind of guest a test gets: User-Mode Linux where it can be had, QEMU otherwise and where a test asks for it.

A mark says what a test or a module needs: `qemu(reason)` for another processor, chipset or QEMU's own functions,
`systemd` for systemd as the first process. MACHINE_HIL_GUEST=qemu has everything in QEMU.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Final

import pytest

from tests.hil.image.places import IMAGE, built_from
from tests.hil.rig.qemu_machine import QemuMachine
from tests.hil.rig.uml_machine import UmlMachine
from tests.hil.rig.vm import VirtualMachine
from tests.hil.uml.kernel import KERNEL, why_not_startable

CHOICE: Final = "MACHINE_HIL_GUEST"


@functools.cache
def why_not_uml() -> str:
    """Why guests are in QEMU here; empty if they are in User-Mode Linux."""
    if os.environ.get(CHOICE, "uml") != "uml":
        return f"{CHOICE} is {os.environ[CHOICE]!r}"
    if not (IMAGE / KERNEL).exists():
        return built_from().get("uml_error") or "the image has no kernel of User-Mode Linux: run `make hil`"
    return why_not_startable()


def new_machine(share: Path, node: pytest.Collector | None = None) -> VirtualMachine:
    """A machine, not yet started: of the kind that the marks of a file of tests ask for, if there is one."""
    if why_not_uml() or (node is not None and node.get_closest_marker("qemu")):
        return QemuMachine(share)
    return UmlMachine(share, systemd=node is not None and node.get_closest_marker("systemd") is not None)
