"""Installation and removal, as a list of steps that can be repeated. The functions block.

An interrupted installation is completed by the next one. Every file outside the agent's own folder is in a manifest,
so that the removal leaves nothing behind and touches nothing that people have changed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from agent.folders import locked, prepare
from agent.install import former
from agent.install.credentials import CA_FILE, import_credentials
from agent.install.source import PACKAGE, Staged, point_factory, stage_package
from agent.install.target import ETC_UNITS, InstallTarget, Say
from agent.launch.links import install_launcher, point
from agent.layout import AGENT, PROGRAMS, SERVER, Layout
from agent.releases.chain import check_pin, pin
from agent.supervise.units import RESTART_PAUSE
from agent.system.apply_files import ManagedDisk, apply_files
from agent.system.managed_files import WantedFile
from agent.system.state import MANIFEST as SYSTEM
from agent.system.state import RECORD, SystemRecord, decode, undo
from agent.update import store
from agent.update.record import ReleaseSlots, UpdateRecord
from schema import ErrorKind, MachineError
from support.files import replace_file
from support.files.private import close, is_open
from support.foreign import erase, remove

INSTALLED: Final = "installed-files.json"
"""Manifest of the files that the installation writes, in the folder of the state."""

ENABLED: Final = "units-enabled"
"""File that exists once the units were enabled: what a person disables later stays disabled."""

COMMANDS: Final = "usr/local/bin"
_COMMAND: Final = """\
#!/bin/sh
# Written by machine-agent. The command `{name}` of the installed release.
exec "{folder}/{entry}" "$@"
"""
_WANTS: Final = f"{ETC_UNITS}/multi-user.target.wants"
SPACE: Final = 32 * 1024 * 1024  # bytes for everything but the releases


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """What is to be installed, and where its files of the administrator are."""

    stage: Callable[[Layout], Sequence[Staged]]
    """Puts the releases on the disk. The agent is stopped meanwhile."""
    units: Mapping[str, str]
    """Text of each unit by program."""
    config: Path = Path("/etc/machine.json")
    defaults: Path = Path("/etc/machine-defaults.json")
    credentials: Path | None = None
    """File to copy to `config`."""
    release_root: bytes | None = None
    """root.json of the organization whose signed releases are accepted; None keeps what was pinned before, if any."""
    migrate: bool = False
    """Take over from the reference's services."""
    space: int = 0
    """Bytes that the releases need."""
    fetch: Callable[[Layout, Say], None] = lambda layout, say: None
    """Gets what `stage` needs from the network, while an agent that was installed before still runs."""


def install(target: InstallTarget, request: InstallRequest, say: Say) -> None:
    """Install the agent: folders, launcher, releases, units, credentials; enable and start it.

    `say` receives a line for each step. Can be repeated, also over a running agent: it is stopped, and machine-server
    runs on. A unit that a person has disabled stays disabled at a repeated installation. Raises MachineError with a
    remedy; then run it again. An agent that ran before is started again in any case.
    """
    layout = target.layout
    _check(target, request)
    for problem in prepare(layout):
        say(f"warning: {problem}")
    say(f"folders below {layout.root}: ready")
    with only(layout):
        try:
            request.fetch(layout, say)
            _write(target, request, say)
        finally:
            if not target.live:
                erase(layout.run)
    if target.live:
        target.run(["systemctl", "restart", f"{AGENT}.service"])
        say(f"{AGENT}: started")


def _write(target: InstallTarget, request: InstallRequest, say: Say) -> None:
    """Write everything, while no agent runs."""
    layout = target.layout
    with _agent_stopped(target), locked(layout.lock):
        if request.credentials is not None:
            part = import_credentials(request.credentials, target.inside(request.config))
            say(f"{request.config}: written, for part {part}")
        if request.release_root is not None:
            pin(layout.trust, request.release_root)
            say("root.json: pinned, only signed releases are installed from now on")
        install_launcher(layout)
        for staged in request.stage(layout):
            _use(layout, staged)
            say(f"{staged.program} {staged.release.version}: staged")
        plan = apply_files(
            ManagedDisk(target.root), _relative(INSTALLED), installed_files(target, target.units(), request.units)
        )
        for error in plan.problems.values():
            raise MachineError(error.message, kind=error.kind, remedy="move it away, then run the installation again")
        for file in plan.write:
            say(f"/{file.path}: written")
        _enable(target, say)
        if request.migrate:
            former.migrate(target, say, config=request.config, defaults=request.defaults)
    credentials = target.inside(request.config)
    if not credentials.exists():
        say(
            f"warning: {request.config} does not exist: machine-agent waits for it; "
            "the machine's page in the cloud offers it"
        )
    elif is_open(credentials) and close(credentials):
        say(f"{request.config}: other users can no longer read it")
    os.sync()


def only(layout: Layout) -> AbstractContextManager[None]:
    """Hold the lock of the only installation or removal. PRECONDITION if another one is running."""
    return locked(layout.installation_lock, "another installation or removal is running", "wait until it has ended")


def _check(target: InstallTarget, request: InstallRequest) -> None:
    """Raise MachineError if the installation is not possible. Changes nothing."""
    if not target.has_systemd():
        raise MachineError(
            "systemd is not the init process of this system",
            kind=ErrorKind.PRECONDITION,
            remedy="run `machine-agent --dev-mode` under the supervision that the system has",
        )
    for folder in () if target.live else (Layout().root, ETC_UNITS, _WANTS, COMMANDS, request.config, request.defaults):
        if not target.inside(folder).resolve().is_relative_to(target.root.resolve()):
            raise MachineError(
                f"/{str(folder).lstrip('/')} of the image is a link that leads out of {target.root}",
                kind=ErrorKind.PRECONDITION,
                remedy="replace the link by a relative one: this computer's own files would be written",
            )
    if request.release_root is not None:
        check_pin(request.release_root)
    manifest = _manifest(target.layout, INSTALLED)
    former.check_units(target, manifest.read_text() if manifest.exists() else "")
    if not request.migrate:
        former.check(target)
    folder = target.layout.root
    while not folder.exists():
        folder = folder.parent
    free, need = shutil.disk_usage(folder).free, request.space + SPACE
    if free < need:
        raise MachineError(
            f"the disk of {folder} has {free >> 20} MiB free, and the installation needs {need >> 20} MiB",
            kind=ErrorKind.PRECONDITION,
            remedy="free space, then run it again",
        )


@contextmanager
def _agent_stopped(target: InstallTarget) -> Iterator[None]:
    """Stop a running agent, because only one process may write its records; start it again if the context fails."""
    unit = f"{AGENT}.service"
    ran = target.live and target.run(["systemctl", "is-active", unit], check=False).strip() in ("active", "activating")
    if ran:
        target.run(["systemctl", "stop", unit])
    try:
        yield
    except BaseException:
        if ran:
            target.run(["systemctl", "start", "--no-block", unit], check=False)
        raise


def use_package(layout: Layout) -> None:
    """Make machine-server of this Python environment the current release, unless a release file is installed.

    For --dev-mode, and for containers. Raises MachineError if the record of the program is damaged, and OSError.
    """
    install_launcher(layout)
    for staged in stage_package(layout):
        record = store.load(layout.record(staged.program)).record
        if staged.program == SERVER and (record is None or record.slots.current.origin.startswith(PACKAGE)):
            _use(layout, staged)


def uninstall(target: InstallTarget, say: Say, *, config: Path, defaults: Path, keep_credentials: bool = False) -> None:
    """Stop and remove both programs and every file that was installed or written for them, if there are any.

    Raises MachineError if a program cannot be stopped, or a file was changed by a person and is left; the rest is
    removed all the same.
    """
    layout = target.layout
    remove(_doomed(layout.root))
    if not layout.root.exists():
        say(f"nothing is installed: {layout.root} does not exist")
        return
    if not ((layout.root / "launch").is_dir() and (layout.root / "state").is_dir()):
        raise MachineError(
            f"{layout.root} is not the folder of an installed machine-agent",
            kind=ErrorKind.PRECONDITION,
            remedy="remove it by hand, if it is no longer needed",
        )
    layout.run.mkdir(parents=True, exist_ok=True)
    with only(layout):
        for program in PROGRAMS:
            target.run(["systemctl", "disable", "--now", f"{program}.service"], check=False)
        with locked(layout.lock):
            say("machine-agent and machine-server: stopped")
            _give_back_network(layout, say)
            left = _remove(target, say)
            if not keep_credentials:
                _remove_credentials(target, say, config, defaults)
            # The folder goes last, so that an interrupted removal can be repeated.
            _remove_tree(layout.root)
            say(f"{layout.root}: removed")
            remove(layout.run)
    os.sync()
    if left:
        raise MachineError(
            f"these files were changed by a person and are left: {', '.join(left)}",
            kind=ErrorKind.PRECONDITION,
            remedy="remove them, if they are no longer needed",
        )


def _give_back_network(layout: Layout, say: Say) -> None:
    """Give interfaces back that the agent has taken over from other programs. A failure does not end the removal."""
    if not layout.network_runtime.exists():
        return
    import trio

    from netmgr.service import give_back

    try:
        for line in trio.run(give_back, layout.network_runtime):
            say(line)
    except (MachineError, OSError) as error:
        say(f"the network is not given back: {error}; a restart of the computer does that")


def _remove(target: InstallTarget, say: Say) -> list[str]:
    """Remove the files outside the agent's folder; return those that a person has changed."""
    left: list[str] = []
    for name in (SYSTEM, INSTALLED):
        if not _manifest(target.layout, name).exists():
            continue
        plan = apply_files(ManagedDisk(target.root), _relative(name), ())
        left += [f"/{path}" for path in plan.problems]
        for path in plan.remove:
            say(f"/{path}: removed")
        if name == SYSTEM:
            _undo_system(target, say, plan.remove)
    wants = target.inside(_WANTS)
    for program in PROGRAMS:
        (wants / f"{program}.service").unlink(missing_ok=True)
    with suppress(OSError):  # it has other units, or does not exist
        wants.rmdir()
    pause = target.inside(RESTART_PAUSE)
    pause.unlink(missing_ok=True)
    with suppress(OSError):  # it has other drop-ins, or does not exist
        pause.parent.rmdir()
    target.run(["systemctl", "daemon-reload"], check=False)
    target.run(["systemctl", "reset-failed", *(f"{program}.service" for program in PROGRAMS)], check=False)
    return left


def _undo_system(target: InstallTarget, say: Say, removed: Sequence[str]) -> None:
    """Let journald and the timers of apt run as they did before the system was configured."""
    try:
        record = decode((target.layout.state / RECORD).read_bytes())
    except OSError:
        record = None
    for command in undo(removed, record or SystemRecord()):
        target.run(command, check=False)
        say(f"{' '.join(command)}: done")


def _remove_credentials(target: InstallTarget, say: Say, config: Path, defaults: Path) -> None:
    """Remove the credentials, the certificates that were copied with them, and the defaults."""
    for file in (config, config.with_name(CA_FILE), defaults):
        path = target.inside(file)
        if path.exists():
            path.unlink()
            say(f"{file}: removed")


def _use(layout: Layout, staged: Staged) -> None:
    """Make a release the current one. A repeated installation keeps the former one as previous."""
    program, release = staged
    try:
        before = store.load(layout.record(program)).record
    except MachineError:
        before = None  # damaged in both copies: the installation is the remedy
    if before is None:
        record = UpdateRecord(program, ReleaseSlots(release, factory=release))
    elif before.slots.current == release:
        record = msgspec.structs.replace(before, progress=None)
    else:
        previous = before.slots.current if before.slots.current.sha256 != release.sha256 else before.slots.previous
        record = UpdateRecord(program, ReleaseSlots(release, previous, release), quarantine=(), history=before.history)
    if record != before:
        store.save(layout.record(program), record)
    point_factory(layout, staged)
    back = record.slots.previous
    point(layout, program, run=release.sha256, back=back.sha256 if back else None, trial=False)


def installed_files(target: InstallTarget, folder: str, units: Mapping[str, str]) -> list[WantedFile]:
    """Return the files outside the agent's folder: `units` by program, in `folder`, and the commands."""
    layout = Layout()
    files = [WantedFile(f"{folder}/{program}.service", text) for program, text in units.items()]
    run = layout.launch(AGENT) / "run"
    files.append(WantedFile(f"{COMMANDS}/machine-agent", _COMMAND.format(name=AGENT, folder=run, entry="run"), 0o755))
    if (target.layout.launch(AGENT) / "run" / "machine").exists():
        files.append(
            WantedFile(f"{COMMANDS}/machine", _COMMAND.format(name="machine", folder=run, entry="machine"), 0o755)
        )
    return files


def _enable(target: InstallTarget, say: Say) -> None:
    """Let systemd start both programs at boot. Later only repair links to units that were moved."""
    enabled = target.layout.state / ENABLED
    first = not enabled.exists()
    if target.live:
        target.run(["systemctl", "daemon-reload"])
    for program in PROGRAMS:
        unit, link = f"{program}.service", target.inside(_WANTS) / f"{program}.service"
        text = f"/{target.units()}/{unit}"
        if not first and (not link.is_symlink() or os.readlink(link) == text):
            continue
        if target.live:
            target.run(["systemctl", "reenable", unit])
        else:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(text)
        say(f"{program}: enabled")
    if first:
        replace_file(enabled, b"")


def _manifest(layout: Layout, name: str) -> Path:
    return layout.state / name


def _relative(name: str) -> str:
    return str(_manifest(Layout(), name)).lstrip("/")


def _remove_tree(root: Path) -> None:
    """Remove the agent's folder; only its content if it is a mount point.

    It loses its name first: what an interrupted removal has left is never taken for an installation.
    """
    if root.is_mount():
        for path in root.iterdir():
            erase(path)
        return
    doomed = _doomed(root)
    erase(doomed)
    root.replace(doomed)
    erase(doomed)


def _doomed(root: Path) -> Path:
    return root.with_name(f".{root.name}.removed")
