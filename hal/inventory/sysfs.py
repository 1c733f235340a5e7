"""Reading /sys and /dev below a root, which is another folder in tests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path("/")
MACHINE: Final = "dev/machine"  # where this project's udev rules put their links
_DIGITS: Final = re.compile(r"(\d+)")


def text(file: Path) -> str:
    """What a file of one value says; empty if it cannot be read."""
    try:
        return file.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return ""


def number(file: Path, *, base: int = 10) -> int | None:
    """A file's value as a number; None if it is none."""
    try:
        return int(text(file), base)
    except ValueError:
        return None


def entries(folder: Path, pattern: str = "*") -> list[Path]:
    """What is in a folder, numbers in their order; nothing if there is no such folder."""
    return sorted(folder.glob(pattern), key=lambda entry: natural(entry.name))


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A key that puts ttyUSB2 before ttyUSB10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in _DIGITS.split(name))


def real(path: Path) -> Path:
    """The path without symbolic links."""
    return Path(os.path.realpath(path))


def driver(device: Path) -> str:
    """The name of the kernel driver that has a device; empty if none."""
    link = device / "driver"
    return real(link).name if link.exists() else ""


def links(root: Path, folders: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By name of a device's node: the links in `folders` (such as dev/serial/by-id) that lead to it, in their order."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        for link in entries(root / folder):
            if link.is_symlink():
                found.setdefault(real(link).name, []).append(f"/{folder}/{link.name}")
    return {name: tuple(paths) for name, paths in found.items()}


def above(device: Path) -> Iterator[Path]:
    """A device and the devices it belongs to, nearest first."""
    place = real(device)
    yield place
    yield from place.parents
