"""The commands of apt and dpkg, and what their failures mean."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from agent.system.programs import Done, Programs
from schema import ErrorKind, MachineError
from support.files import replace_file

UPDATE_LIMIT: Final = 900.0  # seconds; packages lists of a slow connection
INSTALL_LIMIT: Final = 3600.0  # seconds; an upgrade of all packages from an SD card

# Existing configuration files of the user are kept, and nothing is asked.
_OPTIONS: Final = (
    "-q", "-y", "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
    "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=60",
)  # fmt: skip
_BUSY: Final = ("Could not get lock", "Unable to acquire the dpkg frontend lock", "frontend lock was locked")
_CONFIGURE: Final = ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")
_COUNT: Final = re.compile(r"^(\d+) upgraded, (\d+) newly installed", re.MULTILINE)
_PREFERENCES: Final = Path("etc/apt/preferences")
_SECURITY: Final = """\
Package: *
Pin: release a=now
Pin-Priority: 100

Package: *
Pin: release n=/security/
Pin-Priority: 500

Package: *
Pin: release a=/security/
Pin-Priority: 500

Package: *
Pin: release o=/[Ss]ecurity/
Pin-Priority: 500

Package: *
Pin: release *
Pin-Priority: -1

"""
"""Pins for upgrades only from origins, codenames and archives that contain `security`. The first pin that matches a
repository applies; installed versions are in `now`. Nothing else can be installed, not even to satisfy a dependency."""
_PRESEED: Final = "unattended-upgrades unattended-upgrades/enable_auto_updates boolean false"


class Apt:
    """Runs apt. Each method raises MachineError; EXHAUSTED if another program holds a lock of apt or dpkg.

    `run` calls functions in a worker; `scratch` is a folder for a file that only root can write.
    """

    def __init__(
        self,
        programs: Programs,
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
        scratch: Path,
        root: Path = Path("/"),
    ) -> None:
        self._programs, self._run = programs, run
        self._preferences, self._own = root / _PREFERENCES, scratch / "apt-preferences"

    async def policy(self) -> str:
        """Return the repositories, as `apt-cache policy` prints them."""
        return _checked("apt-cache policy", await self._programs.run(("apt-cache", "policy")))

    async def is_installed(self, package: str) -> bool:
        """Return whether a package is installed completely."""
        done = await self._programs.run(("dpkg-query", "-W", "-f", "${db:Status-Status}", package))
        return done.status == 0 and done.output.strip() == "installed"

    async def update(self) -> None:
        """Fetch the lists of packages."""
        done = await self._programs.run_apart(("apt-get", "update", *_OPTIONS), limit=UPDATE_LIMIT)
        _checked("apt-get update", done)

    async def install(self, package: str) -> None:
        """Install a package. unattended-upgrades is not switched on by its own files, so that it can be undone."""
        if package == "unattended-upgrades":
            command = ("sh", "-c", f"echo '{_PRESEED}' | debconf-set-selections")
            _checked("debconf-set-selections", await self._programs.run(command))
        words = ("apt-get", "install", *_OPTIONS, "--no-install-recommends", package)
        _checked(f"apt-get install {package}", await self._programs.run_apart(words, limit=INSTALL_LIMIT))

    async def upgrade(self, *, security: bool) -> int:
        """Upgrade all packages, or only from security repositories; return how many were upgraded.

        New packages are installed where an upgrade depends on them, such as a new kernel; none is removed. What an
        interruption has left is completed first.
        """
        configured = await self._programs.run_apart(_CONFIGURE, limit=INSTALL_LIMIT)
        _checked("dpkg --configure -a", configured)
        await self.update()
        options: tuple[str, ...] = ()
        if security:
            await self._run(partial(_write_preferences, self._preferences, self._own))
            options = ("-o", f"Dir::Etc::Preferences={self._own}")
        command = ("apt-get", "upgrade", "--with-new-pkgs", *_OPTIONS, *options)
        output = _checked("apt-get upgrade", await self._programs.run_apart(command, limit=INSTALL_LIMIT))
        counts = _COUNT.search(output)
        return int(counts[1]) + int(counts[2]) if counts is not None else 0


def _checked(name: str, done: Done) -> str:
    if done.status == 0:
        return done.output
    text = done.errors + done.output
    if any(sign in text for sign in _BUSY):
        raise MachineError(
            f"{name}: another program installs packages at the moment",
            kind=ErrorKind.EXHAUSTED,
            remedy="nothing, if it ends by itself: machine-agent tries again",
        )
    raise MachineError(
        f"{name} has failed: {done.message}",
        kind=ErrorKind.UNAVAILABLE,
        remedy=f"check the network and the repositories: run `{name}` on the machine; machine-agent tries again",
    )


def _write_preferences(user: Path, path: Path) -> None:
    """Write our pins before those of the user, whose file apt does not read then."""
    try:
        own = user.read_bytes()
    except FileNotFoundError:
        own = b""
    replace_file(path, _SECURITY.encode() + own)
    path.chmod(0o644)  # apt reads it as an unprivileged user, too
