"""What `machine-agent --install`, `--preinstall` and `--uninstall` do, and how they report it. The functions block."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agent.install.install import Request, install, uninstall
from agent.install.source import stage_package
from agent.install.target import Say, Target
from agent.layout import AGENT, SERVER, Layout
from agent.supervise.units import agent_unit, server_unit
from schema.errors import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line for installation and removal."""

    config: Path
    defaults: Path
    credentials: Path | None = None
    release_root: Path | None = None
    migrate: bool = False
    keep_credentials: bool = False


def run_install(options: Options) -> int:
    """Install into the running system; return the exit code."""
    return _reported(partial(_install, Target(), options))


def run_preinstall(root: Path, options: Options) -> int:
    """Install into the tree of a system below `root`, which is booted later; return the exit code."""
    return _reported(partial(_preinstall, root, options))


def run_uninstall(options: Options) -> int:
    """Remove everything from the running system; return the exit code."""
    return _reported(partial(_uninstall, options))


def _install(target: Target, options: Options, say: Say) -> None:
    layout = Layout()
    config, defaults = options.config.absolute(), options.defaults.absolute()
    units = {AGENT: agent_unit(layout, config, defaults), SERVER: server_unit(layout, config)}
    for warning in interpreter_warnings(Path(sys.executable)):
        say(f"warning: {warning}")
    install(
        target,
        Request(
            stage_package,
            units,
            config,
            defaults,
            credentials=options.credentials,
            release_root=None if options.release_root is None else options.release_root.read_bytes(),
            migrate=options.migrate,
        ),
        say,
    )
    if target.live:
        say("installed: `machine agent status` shows what it does, and `machine-agent --uninstall` removes it")
    else:
        say(f"installed into {target.root}: machine-agent starts when that system is booted")


def _preinstall(root: Path, options: Options, say: Say) -> None:
    if not root.is_dir():
        raise MachineError(
            f"{root} is not a folder",
            kind=ErrorKind.PRECONDITION,
            remedy="mount the root file system of the image, and name that folder",
        )
    root = root.resolve()
    if root == Path("/"):
        raise MachineError(
            "/ is the running system", kind=ErrorKind.PRECONDITION, remedy="install into it with --install"
        )
    target = Target(root, live=False)
    python = Path(sys.executable)
    if target.has_systemd() and not os.access(target.inside(python), os.X_OK):
        raise MachineError(
            f"this machine-agent is a Python package, and {root} has no {python} to run it",
            kind=ErrorKind.PRECONDITION,
            remedy=f"install the package inside of the tree at the same path, such as with `chroot {root}`",
        )
    _install(target, options, say)


def _uninstall(options: Options, say: Say) -> None:
    uninstall(
        Target(),
        say,
        config=options.config.absolute(),
        defaults=options.defaults.absolute(),
        keep_credentials=options.keep_credentials,
    )


def interpreter_warnings(python: Path) -> list[str]:
    """Return what is wrong with starting a service of root with this interpreter."""
    warnings = [f"both programs are started with {python}: keep that Python environment"]
    for path in (python, *python.parents):
        status = path.stat()
        if status.st_uid != 0:
            warnings.append(f"{path} belongs to user {status.st_uid}, who can thereby run programs as root")
            break
    return warnings


def _reported(action: Callable[[Say], None]) -> int:
    """Run an action; print its steps, and its error with the remedy."""
    try:
        action(_print)
    except MachineError as error:
        sys.stderr.write(f"machine-agent: {error}\n")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"machine-agent: {where}{error.strerror or error}; repeat the command when this is repaired\n")
    else:
        return 0
    return 1


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
