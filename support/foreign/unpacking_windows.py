"""Refusal to unpack archives on Windows.

Names such as `a:b`, `con` or `dir.` would write elsewhere than they say, and folders cannot be opened relative to each
other, on which the safety of unpacking rests.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO, NoReturn

from support.foreign.stream import BadArchiveError
from support.foreign.tar import Archive, Bounds

assert sys.platform == "win32"


def check_system() -> NoReturn:
    """Raise BadArchiveError."""
    raise BadArchiveError("archives are not unpacked on Windows: unpack it yourself, and configure its program")


def unpack(source: BinaryIO, folder: Path, bounds: Bounds) -> None:
    """Raise BadArchiveError."""
    check_system()


def unpack_into(archive: Archive, folder: Path, bounds: Bounds) -> list[str]:
    """Raise BadArchiveError."""
    check_system()
