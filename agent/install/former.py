"""The services of the reference, which would run the same machine a second time. The functions block."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from agent.install.target import ETC_UNITS, LOCAL_UNITS, InstallTarget, Say
from agent.layout import PROGRAMS
from schema import ErrorKind, MachineError
from support.files import replace_file

SERVICES: Final = ("viam-agent.service", "viam-server.service")
CREDENTIALS: Final = Path("/etc/viam.json")
DEFAULTS: Final = Path("/etc/viam-defaults.json")
FOLDERS: Final = (ETC_UNITS, LOCAL_UNITS, "usr/lib/systemd/system", "lib/systemd/system")
_WANTS: Final = f"{ETC_UNITS}/multi-user.target.wants"


def in_use(target: InstallTarget) -> tuple[str, ...]:
    """Return the services that run, or are started at boot."""
    return tuple(name for name in SERVICES if _exists(target, name) and _starts(target, name))


def check(target: InstallTarget) -> None:
    """Raise MachineError if a service is in use."""
    if services := in_use(target):
        raise MachineError(
            f"{' and '.join(services)} would run this machine a second time",
            kind=ErrorKind.PRECONDITION,
            remedy="add --migrate: it disables them, and copies their credentials and defaults; it removes nothing",
        )


def check_units(target: InstallTarget, manifest: str) -> None:
    """Raise MachineError if units of the administrator would replace those of the agent.

    An example is a service that `machine-server -install` has installed. `manifest` names the files of the agent.
    """
    if target.units() == ETC_UNITS:
        return  # they have the same path, and files of another source are never overwritten
    for program in PROGRAMS:
        unit = target.inside(f"{ETC_UNITS}/{program}.service")
        if unit.is_file() and f'"{ETC_UNITS}/{unit.name}"' not in manifest:
            raise MachineError(
                f"/{ETC_UNITS}/{unit.name} exists, and would replace the unit of machine-agent",
                kind=ErrorKind.PRECONDITION,
                remedy="if `machine-server -install` wrote it, remove it with `machine-server -uninstall`, "
                "otherwise move it away",
            )


def migrate(target: InstallTarget, say: Say, *, config: Path, defaults: Path) -> None:
    """Copy credentials and defaults unless the own files exist, then stop and disable the services. Can be repeated."""
    for source, destination in ((CREDENTIALS, config), (DEFAULTS, defaults)):
        old, new = target.inside(source), target.inside(destination)
        if old.is_file() and not new.exists():
            replace_file(new, old.read_bytes())
            say(f"{destination}: copied from {source}")
    for name in in_use(target):
        if target.live:
            target.run(["systemctl", "disable", "--now", name])
        else:
            target.inside(f"{_WANTS}/{name}").unlink()
        say(f"{name}: disabled; to use it again: systemctl enable --now {name}")


def _exists(target: InstallTarget, name: str) -> bool:
    return any(os.path.lexists(target.inside(f"{folder}/{name}")) for folder in FOLDERS)


def _starts(target: InstallTarget, name: str) -> bool:
    if not target.live:
        return target.inside(f"{_WANTS}/{name}").is_symlink()
    enabled, active = (
        target.run(["systemctl", question, name], check=False).strip() for question in ("is-enabled", "is-active")
    )
    return enabled.startswith("enabled") or active in ("active", "activating", "reloading")
