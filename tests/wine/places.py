"""Paths of the room for Windows programs, and whether it is current."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = Path(
    os.environ.get("MACHINE_WINE_CACHE") or Path.home() / ".cache" / "machine-runtime" / "wine"
).resolve()
INPUTS: Final = ("tests/wine/build.py", "requirements/run.lock", "requirements/test.lock")
"""Everything that determines the room, apart from Debian's packages. The project's source is not in it."""


def digest() -> str:
    """Return a digest of the inputs."""
    total = hashlib.sha256()
    for name in INPUTS:
        total.update(f"{name}\0".encode() + (ROOT / name).read_bytes() + b"\0")
    return total.hexdigest()[:16]


def tree() -> Path:
    """Return the folder of the current room, which may not exist yet."""
    return CACHE / f"room-{digest()}"


def why_not_ready() -> str:
    """Return why no Windows program can be started here; empty if one can be."""
    if os.geteuid() != 0:
        return "Windows programs are started in a root of their own, which needs root: sudo make test"
    if not tree().exists():
        return f"there is no current room for Windows programs in {CACHE}: run `make wine` (Debian, amd64, root)"
    return ""
