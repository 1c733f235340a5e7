"""Arguments and environment of a module, as defined by the published module protocol."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schema import ConfigError, ErrorKind, MachineError

DATA_VARIABLE: Final = "VIAM_MODULE_DATA"
NAME_VARIABLE: Final = "VIAM_MODULE_NAME"
TCP_VARIABLE: Final = "VIAM_TCP_SOCKETS"
HARDWARE_VARIABLE: Final = "MACHINE_HARDWARE"
_YES: Final = frozenset({"true", "yes", "1"})


@dataclass(frozen=True, slots=True)
class ModuleStart:
    """Settings with which a module was started."""

    address: str  # path of the Unix socket to listen on, or host:port
    name: str  # of the module, from the configuration
    tcp: bool = False
    level: str = "info"
    hardware: str = "linux"  # family of hardware, see engine.hardware
    ignored: tuple[str, ...] = ()  # unknown arguments


def parse_start(arguments: Sequence[str], environment: Mapping[str, str]) -> ModuleStart:
    """Parse `ADDRESS [--log-level=LEVEL] [--tcp-mode]`; unknown arguments, of newer servers, are kept in `ignored`.

    Raises MachineError (INVALID) without an address, ConfigError for an unknown level.
    """
    from schema.document import parse_level

    addresses: list[str] = []
    ignored: list[str] = []
    level, tcp = "info", environment.get(TCP_VARIABLE, "").lower() in _YES
    rest = iter(arguments)
    for argument in rest:
        key, equals, value = argument.partition("=")
        if key.lstrip("-") == "log-level" and argument.startswith("-"):
            level = value if equals else next(rest, "")
            parse_level(level, path="--log-level")
        elif key.lstrip("-") == "tcp-mode" and argument.startswith("-"):
            tcp = not equals or value.lower() in _YES
        elif argument.startswith("-") or addresses:
            ignored.append(argument)
        else:
            addresses.append(argument)
    if not addresses:
        raise MachineError(
            "this program is a module and needs an address to listen on",
            kind=ErrorKind.INVALID,
            remedy="add it to `modules` of a machine's configuration, or try it with `machine module run`",
        )
    name = environment.get(NAME_VARIABLE) or "module"
    hardware = environment.get(HARDWARE_VARIABLE) or "linux"
    return ModuleStart(
        addresses[0], name, tcp or _is_port(addresses[0]), level.strip().lower(), hardware, tuple(ignored)
    )


def _is_port(address: str) -> bool:
    host, colon, port = address.rpartition(":")
    return bool(colon and host) and "/" not in address and port.isascii() and port.isdigit()


def data_folder() -> Path:
    """Return the folder in which this module may keep files; it is kept across restarts and updates.

    machine-server creates it and sets the environment variable DATA_VARIABLE. Raises ConfigError if that is not set,
    as in a test.
    """
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise ConfigError(
            DATA_VARIABLE,
            "no folder for the data of this module is set",
            remedy=f"set {DATA_VARIABLE} to a folder; machine-server does so for the modules it starts",
        )
    return Path(folder)
