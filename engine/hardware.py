"""Selects the family of hardware drivers of a machine."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Final

from hal import Hardware
from hal.sim import World
from schema import ErrorKind, MachineError

_COMPUTER: Final = (
    "hal.windows.hardware:WindowsHardware" if sys.platform == "win32" else "hal.linux.hardware:LinuxHardware"
)
_FAMILIES: Final = {
    "linux": _COMPUTER,  # the hardware of this computer, also where it does not run Linux
    "gpiozero": "hal.zero.hardware:ZeroHardware",
}


def open_hardware(kind: str, world: World) -> Hardware:
    """Return the hardware of a family: linux, sim, gpiozero, or `module:function`, a function from World to Hardware.

    Raises MachineError if the family is unknown or cannot be loaded.
    """
    if kind == "sim":
        from hal.sim import SimHardware

        return SimHardware(world)
    if kind in _FAMILIES:
        create: Callable[[], Hardware] = _imported(_FAMILIES[kind])
        return create()
    if ":" not in kind:
        raise MachineError(
            f"there is no hardware family {kind!r}",
            kind=ErrorKind.INVALID,
            remedy="use linux, sim, gpiozero, or module:function for your own simulated hardware",
        )
    create_simulated: Callable[[World], Hardware] = _imported(kind)
    return create_simulated(world)


def _imported(path: str) -> Callable[..., Hardware]:
    module, _, name = path.partition(":")
    try:
        constructor: Callable[..., Hardware] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise MachineError(
            f"the hardware {path} could not be loaded: {error}",
            kind=ErrorKind.INVALID,
            remedy="install the package, or correct module:function",
        ) from error
    return constructor
