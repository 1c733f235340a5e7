"""The commands of apt and dpkg, and what their failures mean."""

from __future__ import annotations

from typing import Final

from agent.system.programs import Done, Programs
from schema.errors import ErrorKind, MachineError

UPDATE_LIMIT: Final = 900.0  # seconds; packages lists of a slow connection
INSTALL_LIMIT: Final = 3600.0  # seconds; an upgrade of all packages from an SD card

# Existing configuration files of the user are kept, and nothing is asked.
_OPTIONS: Final = (
    "-q", "-y", "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
    "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=60",
)  # fmt: skip
_BUSY: Final = ("Could not get lock", "Unable to acquire the dpkg frontend lock", "frontend lock was locked")
_PRESEED: Final = "unattended-upgrades unattended-upgrades/enable_auto_updates boolean false"


class Apt:
    """Runs apt. Each method raises MachineError; EXHAUSTED if another program holds a lock of apt or dpkg."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

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
