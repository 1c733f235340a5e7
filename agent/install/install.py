"""Installation and removal, as a list of steps that can be repeated. The functions block.

An interrupted installation is completed by the next one. Every file outside the agent's own folder is in a manifest,
so that the removal leaves nothing behind and touches nothing that people have changed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from agent.folders import prepare
from agent.install.source import PACKAGE, Staged, point_factory, stage_package
from agent.install.target import Target
from agent.launch.links import install_launcher, point
from agent.layout import AGENT, PROGRAMS, SERVER, Layout
from agent.system.apply_files import Disk, apply_files
from agent.system.managed_files import FilePlan, WantedFile
from agent.update import store
from agent.update.record import Record, Slots
from schema.errors import ErrorKind, MachineError
from support.private import close, is_open

INSTALLED: Final = "installed-files.json"
"""Manifest of the files that the installation writes, in the folder of the state."""

SYSTEM: Final = "system-files.json"
"""Manifest of the files that the system configuration writes."""

COMMANDS: Final = "usr/local/bin"
_COMMAND: Final = """\
#!/bin/sh
# Written by machine-agent. The command `{name}` of the installed release.
exec "{folder}/{entry}" "$@"
"""
Say = Callable[[str], None]


def install(
    target: Target,
    stage: Callable[[Layout], Sequence[Staged]],
    units: Mapping[str, str],
    say: Say,
    *,
    config: Path = Path("/etc/machine.json"),
    start: bool = True,
) -> None:
    """Install the agent: folders, launcher, releases, units; enable and start it.

    `stage` puts the releases on the disk, `units` has the text of each unit by program, `say` receives a line for each
    step. A unit that a person has disabled stays disabled at a repeated installation. Raises MachineError with a
    remedy; then run it again.
    """
    layout = target.layout
    if not target.has_systemd():
        raise MachineError(
            "systemd is not the init process of this system",
            kind=ErrorKind.PRECONDITION,
            remedy="run `machine-agent --dev-mode` under the supervision that the system has",
        )
    for problem in prepare(layout):
        say(f"warning: {problem}")
    say(f"folders below {layout.root}: ready")
    install_launcher(layout)
    for staged in stage(layout):
        _use(layout, staged)
        say(f"{staged.program} {staged.release.version}: staged")
    first = not _manifest(layout, INSTALLED).exists()
    plan = apply_files(Disk(target.root), _relative(target, INSTALLED), _files(target, units))
    for error in plan.problems.values():
        raise error
    for file in plan.write:
        say(f"/{file.path}: written")
    _enable(target, first, plan, say)
    if start and target.live:
        target.run(["systemctl", "restart", f"{AGENT}.service"])
        say(f"{AGENT}: started")
    credentials = target.inside(config)
    if not credentials.exists():
        say(f"warning: {config} does not exist: machine-agent waits for it; the machine's page in the cloud offers it")
    elif is_open(credentials) and close(credentials):
        say(f"{config}: other users can no longer read it")
    os.sync()


def use_package(layout: Layout) -> None:
    """Make machine-server of this Python environment the current release, unless a release file is installed.

    For --dev-mode, and for containers. Raises MachineError if the record of the program is damaged, and OSError.
    """
    install_launcher(layout)
    for staged in stage_package(layout):
        record = store.load(layout.record(staged.program)).record
        if staged.program == SERVER and (record is None or record.slots.current.origin.startswith(PACKAGE)):
            _use(layout, staged)


def uninstall(target: Target, say: Say, *, config: Path, defaults: Path, keep_credentials: bool = False) -> None:
    """Stop and remove both programs and every file that was installed or written for them.

    Raises MachineError if a program cannot be stopped, or a file was changed by a person and is left; the rest is
    removed all the same.
    """
    layout = target.layout
    for program in PROGRAMS:
        target.run(["systemctl", "disable", "--now", f"{program}.service"], check=False)
    say("machine-agent and machine-server: stopped")
    left: list[str] = []
    for name in (SYSTEM, INSTALLED):
        if not _manifest(layout, name).exists():
            continue
        plan = apply_files(Disk(target.root), _relative(target, name), ())
        left += [f"/{path}" for path in plan.problems]
        for path in plan.remove:
            say(f"/{path}: removed")
    _wants(target).unlink(missing_ok=True)
    target.run(["systemctl", "daemon-reload"], check=False)
    _remove_tree(layout.root)
    say(f"{layout.root}: removed")
    shutil.rmtree(layout.run, ignore_errors=True)
    if not keep_credentials:
        for file in (config, defaults):
            target.inside(file).unlink(missing_ok=True)
            say(f"{file}: removed")
    os.sync()
    if left:
        raise MachineError(
            f"these files were changed by a person and are left: {', '.join(left)}",
            kind=ErrorKind.PRECONDITION,
            remedy="remove them, if they are no longer needed",
        )


def _use(layout: Layout, staged: Staged) -> None:
    """Make a release the current one. A repeated installation keeps the former one as previous."""
    program, release = staged
    try:
        former = store.load(layout.record(program)).record
    except MachineError:
        former = None  # damaged in both copies: the installation is the remedy
    if former is None:
        record = Record(program, Slots(release, factory=release))
    elif former.slots.current == release and former.progress is None:
        record = former
    else:
        previous = former.slots.current if former.slots.current.sha256 != release.sha256 else former.slots.previous
        record = Record(program, Slots(release, previous, release), quarantine=(), history=former.history)
    if record != former:
        store.save(layout.record(program), record)
    point_factory(layout, staged)
    back = record.slots.previous
    point(layout, program, run=release.sha256, back=back.sha256 if back else None, trial=False)


def _files(target: Target, units: Mapping[str, str]) -> list[WantedFile]:
    """Return the files outside the agent's folder."""
    layout, folder = Layout(), target.units()
    files = [WantedFile(f"{folder}/{program}.service", text) for program, text in units.items()]
    run = layout.launch(AGENT) / "run"
    files.append(WantedFile(f"{COMMANDS}/machine-agent", _COMMAND.format(name=AGENT, folder=run, entry="run"), 0o755))
    if (target.layout.launch(AGENT) / "run" / "machine").exists():
        files.append(
            WantedFile(f"{COMMANDS}/machine", _COMMAND.format(name="machine", folder=run, entry="machine"), 0o755)
        )
    return files


def _enable(target: Target, first: bool, plan: FilePlan, say: Say) -> None:
    if not target.live:
        link = _wants(target)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(f"/{target.units()}/{link.name}")
        say(f"{AGENT}: enabled for the next boot")
        return
    if plan.write:
        target.run(["systemctl", "daemon-reload"])
    if first:
        target.run(["systemctl", "enable", f"{AGENT}.service"])
        say(f"{AGENT}: enabled")


def _wants(target: Target) -> Path:
    """Return the link with which systemd starts the agent at boot. The agent starts machine-server."""
    return target.inside("etc/systemd/system/multi-user.target.wants") / f"{AGENT}.service"


def _manifest(layout: Layout, name: str) -> Path:
    return layout.state / name


def _relative(target: Target, name: str) -> str:
    return str(_manifest(Layout(), name)).lstrip("/")


def _remove_tree(root: Path) -> None:
    """Remove the agent's folder. MachineError if it does not look like it, so that a wrong path does no harm."""
    if not root.exists():
        return
    if not ((root / "launch").is_dir() and (root / "state").is_dir()) or len(root.parts) < 3:
        raise MachineError(
            f"{root} is not the folder of an installed machine-agent",
            kind=ErrorKind.PRECONDITION,
            remedy="remove it by hand, if it is no longer needed",
        )
    shutil.rmtree(root)
