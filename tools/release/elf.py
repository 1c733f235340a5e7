"""What compiled files need: libraries, and the oldest glibc, as `readelf` prints it for any processor."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

GLIBC: Final = re.compile(r"(?:ld-linux.*|lib(?:c|m|dl|rt|util|pthread|resolv|anl|mvec))\.so\.\d+")
"""Libraries that belong to the system: a program must use the same version of all of them."""

_NEEDED: Final = re.compile(r"\(NEEDED\).*\[(.+)\]")
_SYMBOL: Final = re.compile(r"\bGLIBC_(\d+)\.(\d+)")


class Elf(NamedTuple):
    """What one compiled file needs."""

    libraries: tuple[str, ...]
    glibc: tuple[int, int]  # the oldest version with all symbols; (0, 0) if it uses none


def is_elf(path: Path) -> bool:
    """Return whether this is a compiled program or library."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def read_elf(path: Path) -> Elf:
    """Return what a file needs. CalledProcessError if `readelf` cannot read it."""
    command = ["readelf", "--wide", "--dynamic", "--version-info", str(path)]
    return parse(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def parse(text: str) -> Elf:
    """Return what the output of `readelf --dynamic --version-info` says."""
    versions = ((int(major), int(minor)) for major, minor in _SYMBOL.findall(text))
    return Elf(tuple(_NEEDED.findall(text)), max(versions, default=(0, 0)))


def read_all(tree: Path) -> dict[Path, Elf]:
    """Return what each compiled file of a tree needs."""
    return {path: read_elf(path) for path in sorted(tree.rglob("*")) if is_elf(path)}


def missing(files: Mapping[Path, Elf], names: Iterable[str] = ()) -> dict[str, Path]:
    """Return each needed library that neither the tree nor glibc contains, with a file that needs it."""
    present = {path.name for path in files} | set(names)
    return {
        library: path
        for path, elf in files.items()
        for library in elf.libraries
        if library not in present and not GLIBC.fullmatch(library)
    }
