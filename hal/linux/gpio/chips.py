"""Look-up of GPIO chips by label, name or path."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gpiod

from hal.errors import Fault, HalError

DEV: Final = Path("/dev")
GROUP: Final = "gpio"  # the group with access on Raspberry Pi OS and by this project's udev rules


@dataclass(frozen=True, slots=True)
class ChipFound:
    """A chip: its character device, the kernel's name and label, and its number of lines."""

    path: Path
    name: str
    label: str
    lines: int

    def __str__(self) -> str:
        return f"{self.name} [{self.label}] with {self.lines} lines"


def chips(folder: Path = DEV) -> tuple[list[ChipFound], list[Path]]:
    """Return the accessible chips in the order of their numbers, and the paths that this user may not open."""
    by_name: dict[str, ChipFound] = {}
    denied = []
    for path in sorted(folder.glob("gpiochip*"), key=lambda path: (path.is_symlink(), len(path.name), path.name)):
        try:
            chip = describe(path)
        except PermissionError:
            denied.append(path)
        except OSError:
            continue  # it was removed after the folder was listed
        else:
            by_name.setdefault(chip.name, chip)  # a compatibility link is a second name of a chip
    return list(by_name.values()), denied


def describe(path: Path) -> ChipFound:
    """Query the kernel for the chip at `path`. OSError if it is not a chip or access is denied."""
    with gpiod.Chip(str(path)) as chip:
        info = chip.get_info()
    return ChipFound(path, info.name, info.label, info.num_lines)


def find_chip(chip: str, folder: Path = DEV) -> ChipFound:
    """Return the chip with that label, name or path.

    HalError: gone (with a list of the existing chips), permission, unsupported (several chips have the label).
    """
    if chip.startswith("/"):
        try:
            return describe(Path(chip))
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise _missing(chip, *chips(folder)) from error
            raise HalError.of(error, chip, group=GROUP) from error
    present, denied = chips(folder)
    matches = [entry for entry in present if entry.name == chip] or [entry for entry in present if entry.label == chip]
    if not matches:
        raise _missing(chip, present, denied)
    if len(matches) > 1:
        raise HalError(
            f"several GPIO chips are labelled {chip}: {', '.join(entry.name for entry in matches)}",
            Fault.UNSUPPORTED,
            remedy="use the name or path of one of them",
        )
    return matches[0]


def _missing(chip: str, present: list[ChipFound], denied: list[Path]) -> HalError:
    if denied:
        names = ", ".join(str(path) for path in denied)
        return HalError(f"{names}: permission denied for user {_user()}", Fault.PERMISSION, remedy=_ACCESS)
    chips = "; ".join(map(str, present)) or "none at all"
    return HalError(
        f"there is no GPIO chip {chip}; there is {chips}",
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
