"""Version of the installed programs, which is the same for all of them."""

from __future__ import annotations

import functools
from typing import Final

UNKNOWN: Final = "0.0.0+unknown"  # for a source tree that is not installed


@functools.cache
def version() -> str:
    """Return the version of the installed distribution."""
    from importlib import metadata  # slow to import, and not needed in most runs

    try:
        return metadata.version("machine-runtime")
    except metadata.PackageNotFoundError:
        return UNKNOWN
