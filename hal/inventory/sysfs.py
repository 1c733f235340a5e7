"""Helpers to read /sys and /dev below a root folder, which differs in tests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path("/")
MACHINE: Final = "dev/machine"  # the folder of links created by this project's udev rules
_DIGITS: Final = re.compile(r"(\d+)")


def text(file: Path) -> str:
    """Return the value in a file; empty if it cannot be read."""
    try:
        return file.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return ""


def number(file: Path, *, base: int = 10) -> int | None:
    """Return the value in a file as a number; None if it is not a number."""
    try:
        return int(text(file), base)
    except ValueError:
        return None


def entries(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the entries of a folder in natural order; empty if there is no such folder."""
    return sorted(folder.glob(pattern), key=lambda entry: natural(entry.name))


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key for natural order, with ttyUSB2 before ttyUSB10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in _DIGITS.split(name))


def real(path: Path) -> Path:
    """Return the path with all symbolic links resolved."""
    return Path(os.path.realpath(path))


def driver(device: Path) -> str:
    """Return the name of a device's kernel driver; empty if it has none."""
    link = device / "driver"
    return real(link).name if link.exists() else ""


def links(root: Path, folders: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the links in `folders` (such as dev/serial/by-id) by the name of the device node that they point to."""
    targets: dict[str, list[str]] = {}
    for folder in folders:
        for link in entries(root / folder):
            if link.is_symlink():
                targets.setdefault(real(link).name, []).append(f"/{folder}/{link.name}")
    return {name: tuple(paths) for name, paths in targets.items()}


def above(device: Path) -> Iterator[Path]:
    """Iterate over a device and its parent devices, nearest first."""
    path = real(device)
    yield path
    yield from path.parents
