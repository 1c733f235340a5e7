"""Which programs the guest's ready interpreter runs: those in Python that need no shell. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.hil.image.contents import WARM_IMPORTS

PYTHON: Final = ("python3", "-m")
HARDWARE: Final = (
    *("hal.inventory.linux", "hal.inventory.checks", "hal.linux.gpio", "hal.linux.i2c", "hal.linux.serial"),
    *("hal.linux.hotplug", "hal.linux.usb"),
)
SERVER: Final = (
    *("runtime.app", "runtime.builtin", "importlib.metadata", "hal.worker", "runtime.ftdc.ring"),
    *("runtime.metrics.sample", "runtime.modules.command", "telemetry.ftdc", "runtime.mdns.names"),
    *("runtime.mdns.follower", "runtime.components.sensor", "runtime.components.board", "encodings.idna"),
)
OPERATOR: Final = ("runtime.operator.hal", "runtime.operator.connection", *HARDWARE)


@dataclass(frozen=True, slots=True)
class Program:
    """A module to be run, its arguments, and what is imported once for all who run it."""

    module: str
    arguments: tuple[str, ...] = ()
    imports: tuple[str, ...] = WARM_IMPORTS


NAMED: Final = {
    "machine-server": Program("runtime.cli", imports=(*WARM_IMPORTS, *SERVER)),
    "machine": Program("runtime.operator.cli", imports=(*WARM_IMPORTS, *OPERATOR)),
}
"""As they are installed in the guest: each is `python3 -m` of its module."""

_PLAIN: Final = re.compile(r"[\w ./:,@%+=-]*")


def program_of(command: str | Sequence[str]) -> Program | None:
    """The program in Python that a command line is; None if it is another one, or the shell has something to do."""
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
