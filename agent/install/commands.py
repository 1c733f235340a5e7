"""What `machine-agent --install`, `--preinstall` and `--uninstall` do, and how they report it. The functions block."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent.install import former
from agent.install.install import InstallRequest, install, uninstall
from agent.install.release_files import ReleaseSource, forget_unpacked, is_release, own_file, read_release
from agent.install.source import stage_package
from agent.install.target import InstallTarget, Say
from agent.layout import AGENT, SERVER, Layout
from agent.supervise.units import agent_unit, server_unit
from schema import ErrorKind, MachineError
from uplink import platform
from uplink.releases import normal_platform


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """The options of the command line for installation and removal."""

    config: Path
    defaults: Path
    credentials: Path | None = None
    agent: Path | None = None
    server: Path | None = None
    release_root: Path | None = None
    migrate: bool = False
    keep_credentials: bool = False


def run_install(options: InstallOptions) -> int:
    """Install into the running system; return the exit code."""
    return _reported(partial(_install, InstallTarget(), options))


def run_preinstall(root: Path, options: InstallOptions) -> int:
    """Install into the tree of a system below `root`, which is booted later; return the exit code."""
    return _reported(partial(_preinstall, root, options))


def run_uninstall(options: InstallOptions) -> int:
    """Remove everything from the running system; return the exit code."""
    return _reported(partial(_uninstall, options))


def _install(target: InstallTarget, options: InstallOptions, say: Say) -> None:
    layout = Layout()
    config, defaults = options.config.absolute(), options.defaults.absolute()
    units = {AGENT: agent_unit(layout, config, defaults), SERVER: server_unit(layout, config)}
    root = None if options.release_root is None else options.release_root.read_bytes()
    source = _releases(target, options, root)
    if source is None:
        _check_package(target)
        for warning in interpreter_warnings(Path(sys.executable)):
            say(f"warning: {warning}")
    request = InstallRequest(
        stage_package if source is None else source.stage,
        units,
        config,
        defaults,
        credentials=options.credentials,
        release_root=root,
        migrate=options.migrate,
    )
    if source is not None:
        request = replace(request, fetch=source.fetch, space=source.space)
    install(target, request, say)
    if target.live:
        if source is not None:
            forget_unpacked()
        say("installed: `machine agent status` shows what it does, and `machine-agent --uninstall` removes it")
    else:
        say(f"installed into {target.root}: machine-agent starts when that system is booted")


def _releases(target: InstallTarget, options: InstallOptions, root: bytes | None) -> ReleaseSource | None:
    """Return the release files to install; None if this program is a Python package and no file is named."""
    own, interpreter = own_file(), Path(sys.executable)
    named = {AGENT: options.agent, SERVER: options.server}
    if own is None and not any(named.values()) and not is_release(interpreter):
        return None
    here, there = normal_platform(platform()), target.platform()
    if named[AGENT] is None and own is not None and here == there:
        named[AGENT] = own
    files = {name: read_release(name, path, there) for name, path in named.items() if path is not None}
    installed = target.inside(options.config.absolute())
    before = former.CREDENTIALS if options.migrate and not installed.exists() else options.config.absolute()
    credentials = options.credentials or target.inside(before)
    return ReleaseSource(files, there, credentials, root, target.root)


def _preinstall(root: Path, options: InstallOptions, say: Say) -> None:
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
    _install(InstallTarget(root, live=False), options, say)


def _check_package(target: InstallTarget) -> None:
    """Raise MachineError if a Python package of this computer could not run in an image."""
    python = Path(sys.executable)
    if not target.live and target.has_systemd() and not os.access(target.inside(python), os.X_OK):
        raise MachineError(
            f"this machine-agent is a Python package, and {target.root} has no {python} to run it",
            kind=ErrorKind.PRECONDITION,
            remedy="name release files with --agent and --server: they need no Python",
        )


def _uninstall(options: InstallOptions, say: Say) -> None:
    uninstall(
        InstallTarget(),
        say,
        config=options.config.absolute(),
        defaults=options.defaults.absolute(),
        keep_credentials=options.keep_credentials,
    )
    forget_unpacked()


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
