"""The system on which the agent is installed: the running one, or the tree of an image. The functions block."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.layout import Layout
from schema import ErrorKind, MachineError
from uplink import platform
from uplink.releases import normal_platform

COMMAND_LIMIT: Final = 330.0  # seconds; systemd gives the agent 300 for its start, and machine-server 120 for its end
LOCAL_UNITS: Final = "usr/local/lib/systemd/system"
ETC_UNITS: Final = "etc/systemd/system"
Say = Callable[[str], None]
"""Receives a line for each step."""
MACHINES: Final = {62: "x86_64", 183: "aarch64"}
"""Processors of releases by their number in programs (ELF: e_machine)."""
_INIT: Final = ("usr/lib/systemd/systemd", "lib/systemd/systemd")


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """A system: `root` is / or the root folder of an image; `live` if its systemd runs."""

    root: Path = Path("/")
    live: bool = True

    @property
    def layout(self) -> Layout:
        """The files of the agent there."""
        usual = Layout()
        return Layout(self.inside(usual.root), self.inside(usual.run))

    def inside(self, path: Path | str) -> Path:
        """Return where an absolute path of the system is seen from here."""
        return self.root / str(path).lstrip("/")

    def has_systemd(self) -> bool:
        """Return whether systemd is the init process there, or will be."""
        if self.live:
            return self.inside("run/systemd/system").is_dir() and shutil.which("systemctl") is not None
        return any(self.inside(name).exists() for name in _INIT)

    def platform(self) -> str:
        """Return the platform of the programs there, such as linux/aarch64. INVALID if no release can run there.

        For an image it is that of its systemd; this computer's if that is not a program.
        """
        here = normal_platform(platform())
        if self.live:
            return here
        for name in _INIT:
            machine = machine_of(self.inside(name))
            if machine is not None and machine not in MACHINES.values():
                raise MachineError(
                    f"{self.root} is a system for another processor ({machine}), for which there are no releases",
                    kind=ErrorKind.INVALID,
                    remedy="use a 64-bit image for x86_64 or aarch64",
                )
            if machine is not None:
                return f"linux/{machine}"
        return here

    def units(self) -> str:
        """Return the folder for units of the administrator, relative to the root.

        It is /usr/local/lib/systemd/system where systemd reads that, so that /etc keeps only what people write there.
        """
        if not self.live:
            return ETC_UNITS
        said = self.run(["systemd-path", "systemd-search-system-unit"], check=False)
        return LOCAL_UNITS if f"/{LOCAL_UNITS}" in said.strip().split(":") else ETC_UNITS

    def run(self, command: Sequence[str], *, check: bool = True) -> str:
        """Run a command of the running system and return its output; nothing is run for an image.

        Raises MachineError with the command's message if it fails, unless `check` is false.
        """
        if not self.live:
            return ""
        try:
            done = subprocess.run(
                list(command), capture_output=True, text=True, errors="replace", timeout=COMMAND_LIMIT, check=False
            )
        except FileNotFoundError:
            if not check:
                return ""
            raise MachineError(f"{command[0]} is not installed", kind=ErrorKind.PRECONDITION) from None
        except subprocess.TimeoutExpired:
            raise MachineError(
                f"`{' '.join(command)}` did not end within {COMMAND_LIMIT:g} s", kind=ErrorKind.TIMEOUT
            ) from None
        if check and done.returncode != 0:
            message = done.stderr.strip() or f"exit code {done.returncode}"
            raise MachineError(f"`{' '.join(command)}` failed: {message}", kind=ErrorKind.PRECONDITION)
        return done.stdout


def machine_of(program: Path) -> str | None:
    """Return the processor of a program, such as aarch64, 32-bit, or `number 243`; None if it is another file."""
    try:
        with program.open("rb") as file:
            beginning = file.read(20)
    except OSError:
        return None
    if len(beginning) < 20 or not beginning.startswith(b"\x7fELF"):
        return None
    if beginning[4] != 2:
        return "32-bit"
    number = int.from_bytes(beginning[18:20], "little")
    return MACHINES.get(number, f"number {number}")
