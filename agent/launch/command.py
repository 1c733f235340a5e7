"""How a staged release is started: `run` in its folder is the program; on Windows it names the program.

Windows starts only programs of its own format, and a running one cannot be replaced. So a release is an interpreter
with its packages, and `run` is a JSON list with the words of its command, of which the first is the path of a program,
relative to the folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    from agent.launch import machine_launch as _launcher

    SCRIPT: Final = Path(_launcher.__file__)

    def is_program(run: Path) -> bool:
        """Return whether the launcher would start a release with this `run`."""
        return _launcher.command_of(run.parent) is not None

else:
    import os

    SCRIPT: Final = Path(__file__).with_name("machine-launch")
    """The launcher, as packaged with the agent."""

    def is_program(run: Path) -> bool:
        """Return whether the launcher would start a release with this `run`."""
        try:
            return run.is_file() and run.stat().st_size > 0 and os.access(run, os.X_OK)
        except OSError:
            return False
