"""Version of the installed programs, which is the same for all of them."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Final

UNKNOWN: Final = "0.0.0+unknown"  # for a source tree that is not installed
_METADATA: Final = "machine_runtime-*.dist-info/METADATA"
_FIELD: Final = "Version: "


@functools.cache
def version() -> str:
    """Return the version of the installed distribution. Blocks briefly.

    It reads the field itself, because importlib.metadata loads 0.7 MiB of modules for e-mail and archives.
    """
    for folder in map(Path, sys.path):
        for file in folder.glob(_METADATA):
            with file.open(encoding="utf-8") as lines:
                for line in lines:
                    if line.startswith(_FIELD):
                        return line.removeprefix(_FIELD).strip()
    return UNKNOWN
