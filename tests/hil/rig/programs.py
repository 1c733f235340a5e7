"""Select the programs that the guest's warm interpreter runs: Python programs that need no shell. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.hil.image.contents import WARM_IMPORTS

PYTHON: Final = ("python3", "-m")
HARDWARE: Final = (
    "hal.inventory.scanning",
    "hal.inventory.checks",
    "hal.linux.gpio.lines",
    "hal.linux.i2c.bus",
    "hal.linux.serial",
    "hal.linux.hotplug",
    "hal.linux.usb.device",
)
SERVER: Final = (
    "runtime.server.app",
    "models.table",
    "importlib.metadata",
    "hal.worker",
    "support.files.file_ring",
    "engine.metrics.sample",
    "runtime.programs.command",
    "telemetry.metrics.ftdc",
    "runtime.parts.mdns.names",
    "runtime.parts.mdns.follower",
    "engine.components.sensing.sensor",
    "engine.components.controls.board",
    "encodings.idna",
)
OPERATOR: Final = ("command.hal.group", "command.connection", *HARDWARE)


@dataclass(frozen=True, slots=True)
class Program:
    """A module to run, its arguments, and the modules that are imported once for all its runs."""

    module: str
    arguments: tuple[str, ...] = ()
    imports: tuple[str, ...] = WARM_IMPORTS


NAMED: Final = {
    "machine-server": Program("runtime.server.cli", imports=(*WARM_IMPORTS, *SERVER)),
    "machine": Program("command.cli", imports=(*WARM_IMPORTS, *OPERATOR)),
}
"""Programs installed in the guest; each equals `python3 -m` of its module."""

_PLAIN: Final = re.compile(r"[\w ./:,@%+=-]*")


def program_of(command: str | Sequence[str]) -> Program | None:
    """Return the Python program that a command line runs; None if it runs another program or needs a shell."""
    if isinstance(command, str):
        if not _PLAIN.fullmatch(command):
            return None
        command = shlex.split(command)
    if not command:
        return None
    if command[0] in NAMED:
        named = NAMED[command[0]]
        return Program(named.module, tuple(command[1:]), named.imports)
    if tuple(command[:2]) == PYTHON and len(command) > 2:
        return Program(command[2], tuple(command[3:]))
    return None
