"""Command line, environment, folders and addresses of modules, as defined by the published module protocol."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import socket
import string
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine import home
from rpc.network import HAS_UNIX_SOCKETS
from schema import ConfigError
from schema.document import WORDS, MachineDocument, Module, parse_level
from telemetry.logs import compile_pattern, pattern_matches
from telemetry.logs.logger_names import of_module

LONGEST_ADDRESS: Final = 103  # bytes of a Unix socket's path that every system takes
_RANDOM: Final = 5  # letters that tell one start from the next
TCP_VARIABLE: Final = "VIAM_TCP_SOCKETS"
PYTHON_VARIABLE: Final = "MACHINE_PYTHON"  # interpreter for modules that use this API without their own environment
_YES: Final = frozenset({"true", "yes", "1"})
LOCAL: Final = "local"  # replaces the part's id on a machine without a cloud; part of the protocol


@dataclass(frozen=True, slots=True)
class Program:
    """A program: its file, the folder it runs in, and a program that must have run once before, if any."""

    executable: Path
    root: Path
    first_run: Path | None = None


def data_folder(environment: Mapping[str, str], document: MachineDocument) -> Path:
    """Return the folder that contains the data folders of this machine's modules."""
    part = document.cloud.id if document.cloud is not None else LOCAL
    return home(environment) / "module-data" / part


def uses_tcp(module: Module, environment: Mapping[str, str]) -> bool:
    """Return whether the module uses TCP: as set in its entry, by VIAM_TCP_SOCKETS, or without Unix sockets, always."""
    return module.tcp_mode or not HAS_UNIX_SOCKETS or environment.get(TCP_VARIABLE, "").lower() in _YES


def socket_address(folder: Path, name: str) -> Path:
    """Return a new path for a module's socket, at most LONGEST_ADDRESS bytes long."""
    unique = "".join(random.choices(string.ascii_letters, k=_RANDOM))
    path = folder / f"{name}-{unique}.sock"
    excess = len(os.fsencode(path)) - LONGEST_ADDRESS
    if excess <= 0:
        return path
    digest = base64.b32encode(hashlib.sha256(name.encode()).digest())[:_RANDOM].decode()
    kept = name[: max(0, len(name) - excess - len(digest) - 1)]
    return folder / f"{kept}-{digest}-{unique}.sock"


def tcp_address() -> str:
    """Return a free port of the loopback interface. The module opens it later, so another program may take it first."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def local_program(module: Module, path: str) -> Program:
    """Return the program of a local module; raises ConfigError at `path` if it is missing or not executable."""
    program = absolute(module.executable_path)
    if not program.is_file():
        raise ConfigError(
            f"{path}.executable_path", "there is no such file", value=str(program), remedy="correct the path"
        )
    if not os.access(program, os.X_OK):
        raise ConfigError(
            f"{path}.executable_path",
            "this file is not executable",
            value=str(program),
            remedy=f"chmod +x {program}",
        )
    return Program(program, program.parent)


def absolute(path: str) -> Path:
    """Return the absolute form of a path in an entry, with `~` expanded."""
    return Path(path).expanduser().absolute()


def log_level(module: Module, document: MachineDocument, *, debug: bool) -> str:
    """Return the log level to pass to the module; empty for the module's own default.

    `debug` (of the command line or the document) takes precedence over the entry, which takes precedence over the last
    pattern of `log` that matches the module's name or the name of its logger.
    """
    if debug or document.debug:
        return "debug"
    if module.log_level:
        return module.log_level
    for rule in reversed(document.log):
        try:
            pattern, level = compile_pattern(rule.pattern), parse_level(rule.level)
        except Exception:
            continue
        if pattern_matches(pattern, (module.name, of_module(module.name))):
            return WORDS[level]
    return ""


def command_line(program: Program, address: str, level: str, *, tcp: bool = False) -> list[str]:
    """Return the command line of a module."""
    options = [*([f"--log-level={level}"] if level else []), *(["--tcp-mode"] if tcp else [])]
    return [str(program.executable), address, *options]


def machine_facts(document: MachineDocument, *, tracing: bool = False) -> dict[str, str]:
    """Return the protocol's variables that describe the machine to a module, including an API key, if available.

    If the machine is `tracing`, its modules send their spans too.
    """
    facts = {"VIAM_MACHINE_FQDN": document.network.fqdn, "VIAM_MODULE_TRACING": "1" if tracing else ""}
    if (cloud := document.cloud) is not None:
        facts |= {
            "VIAM_PRIMARY_ORG_ID": cloud.primary_org_id,
            "VIAM_LOCATION_ID": cloud.location_id,
            "VIAM_MACHINE_FQDN": cloud.fqdn or document.network.fqdn,
            "VIAM_MACHINE_ID": cloud.machine_id,
            "VIAM_MACHINE_PART_ID": cloud.id,
        }
    keys = {key_id: key for handler in document.auth.handlers for key_id, key in handler.keys.items()}
    if keys:
        first_id = min(keys)  # the protocol passes the key with the first id in sort order
        facts |= {"VIAM_API_KEY_ID": first_id, "VIAM_API_KEY": keys[first_id]}
    return {name: value for name, value in facts.items() if value}


def environment_of(
    module: Module,
    program: Program,
    address: str,
    data: Path,
    *,
    inherited: Mapping[str, str],
    facts: Mapping[str, str],
) -> dict[str, str]:
    """Return the module's environment: inherited, defined by the protocol, set in its entry; later ones override."""
    protocol_variables = {
        "VIAM_HOME": str(data.parent.parent.parent),
        "VIAM_MODULE_DATA": str(data),
        "VIAM_MODULE_NAME": module.name,
        "VIAM_MODULE_ROOT": str(program.root),
        "VIAM_MODULE_ADDRESS": address,
        PYTHON_VARIABLE: sys.executable,
        **facts,
    }
    if module.module_id:
        protocol_variables["VIAM_MODULE_ID"] = module.module_id
    return {**inherited, **protocol_variables, **module.env}
