"""GPIO chips of this computer: found by label, name or path, and what is said when they are not there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gpiod

from hal.errors import Fault, HalError

DEV: Final = Path("/dev")
GROUP: Final = "gpio"  # whose members may use the chips on Raspberry Pi OS and by this project's udev rules


@dataclass(frozen=True, slots=True)
class ChipFound:
    """One chip: its character device, the kernel's name and label, and how many lines it has."""

    path: Path
    name: str
    label: str
    lines: int

    def __str__(self) -> str:
        return f"{self.name} [{self.label}] with {self.lines} lines"


def chips(folder: Path = DEV) -> tuple[list[ChipFound], list[Path]]:
    """The chips that can be opened, in the order of their numbers, and the paths that this user may not open."""
    found: dict[str, ChipFound] = {}
    denied = []
    for path in sorted(folder.glob("gpiochip*"), key=lambda path: (path.is_symlink(), len(path.name), path.name)):
        try:
            chip = describe(path)
        except PermissionError:
            denied.append(path)
        except OSError:
            continue  # it went away between the listing and now
        else:
            found.setdefault(chip.name, chip)  # a compatibility link names a chip once more
    return list(found.values()), denied


def describe(path: Path) -> ChipFound:
    """Ask the kernel about the chip at `path`. OSError if that is not one, or not allowed."""
    with gpiod.Chip(str(path)) as chip:
        info = chip.get_info()
    return ChipFound(path, info.name, info.label, info.num_lines)


def find_chip(chip: str, folder: Path = DEV) -> ChipFound:
    """The chip with that label, name or path.

    HalError: gone (the chips that exist are named), permission, unsupported (several chips have the label).
    """
    if chip.startswith("/"):
        try:
            return describe(Path(chip))
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise _missing(chip, *chips(folder)) from error
            raise HalError.of(error, chip, group=GROUP) from error
    found, denied = chips(folder)
    fitting = [entry for entry in found if entry.name == chip] or [entry for entry in found if entry.label == chip]
    if not fitting:
        raise _missing(chip, found, denied)
    if len(fitting) > 1:
        raise HalError(
            f"several GPIO chips are labelled {chip}: {', '.join(entry.name for entry in fitting)}",
            Fault.UNSUPPORTED,
            remedy="name the one you mean by name or path",
        )
    return fitting[0]


def _missing(chip: str, found: list[ChipFound], denied: list[Path]) -> HalError:
    if denied:
        names = ", ".join(str(path) for path in denied)
        return HalError(f"{names}: not allowed for user {_user()}", Fault.PERMISSION, remedy=_ACCESS)
    there = "; ".join(map(str, found)) or "none at all"
    return HalError(
        f"there is no GPIO chip {chip}; there is {there}",
        Fault.GONE,
        remedy="correct the chip's label, name or path, or load its driver",
    )


_ACCESS: Final = f"add the user to group {GROUP}, and install the udev rules"


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
