"""How a module is started: command line, environment, folder, address. Facts of the published module protocol."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from schema.errors import ConfigError
from schema.modules import Module

LONGEST_ADDRESS: Final = 103  # bytes of a Unix socket's path that every system takes
_RANDOM: Final = 5  # letters that tell one start from the next
HOME_VARIABLE: Final = "MACHINE_HOME"


def home(environment: Mapping[str, str]) -> Path:
    """The folder of everything that machine-server keeps: MACHINE_HOME, or `.machine` in the user's home."""
    named = environment.get(HOME_VARIABLE) or environment.get("VIAM_HOME")
    return Path(named) if named else Path.home() / ".machine"


def socket_address(folder: Path, name: str) -> Path:
    """A new path for a module's socket, no longer than every system takes."""
    unique = "".join(random.choices(string.ascii_letters, k=_RANDOM))
    path = folder / f"{name}-{unique}.sock"
    excess = len(os.fsencode(path)) - LONGEST_ADDRESS
    if excess <= 0:
        return path
    digest = base64.b32encode(hashlib.sha256(name.encode()).digest())[:_RANDOM].decode()
    kept = name[: max(0, len(name) - excess - len(digest) - 1)]
    return folder / f"{kept}-{digest}-{unique}.sock"


def executable(module: Module, path: str) -> Path:
    """The program of a local module; ConfigError at `path` if it is not there or may not be run."""
    if module.type == "registry" or module.is_archive:
        raise ConfigError(
            f"{path}.{'type' if module.type == 'registry' else 'executable_path'}",
            "modules of the registry and archives are not run yet",
            value=module.executable_path or module.module_id,
            remedy="unpack it and name its program in executable_path, with type local",
        )
    if module.tcp_mode:
        raise ConfigError(
            f"{path}.tcp_mode",
            "modules are spoken to by Unix sockets only",
            value=True,
            remedy="remove it",
        )
    program = Path(module.executable_path).expanduser()
    if not program.is_file():
        raise ConfigError(
            f"{path}.executable_path", "there is no such file", value=str(program), remedy="correct the path"
        )
    if not os.access(program, os.X_OK):
        raise ConfigError(
            f"{path}.executable_path",
            "this file may not be executed",
            value=str(program),
            remedy=f"chmod +x {program}",
        )
    return program.absolute()


def command_line(program: Path, address: Path, level: str) -> list[str]:
    """The module's arguments."""
    return [str(program), str(address), *([f"--log-level={level}"] if level else [])]


def environment_of(
    module: Module, program: Path, address: Path, data: Path, inherited: Mapping[str, str]
) -> dict[str, str]:
    """The module's environment: what is inherited, what the protocol promises, what the entry says, the last wins."""
    promised = {
        "VIAM_HOME": str(data.parent.parent.parent),
        "VIAM_MODULE_DATA": str(data),
        "VIAM_MODULE_NAME": module.name,
        "VIAM_MODULE_ROOT": str(program.parent),
        "VIAM_MODULE_ADDRESS": str(address),
    }
    if module.module_id:
        promised["VIAM_MODULE_ID"] = module.module_id
    return {**inherited, **promised, **module.env}
