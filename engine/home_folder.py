"""The folder in which machine-server keeps its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "MACHINE_HOME"


def home(environment: Mapping[str, str]) -> Path:
    """Return the folder of everything that machine-server keeps: MACHINE_HOME, or `.machine` in the user's home.

    Raises RuntimeError for a user without a home.
    """
    configured = environment.get(VARIABLE) or environment.get("VIAM_HOME")
    return Path(configured).absolute() if configured else Path.home() / ".machine"
