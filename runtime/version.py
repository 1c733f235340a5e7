"""Which version this is."""

from __future__ import annotations

import functools
from typing import Final

PLATFORM: Final = "rdk"  # the word of the wire for a machine server
API_VERSION: Final = "v0.1.601"  # of the published API that the pinned viam-sdk carries
UNKNOWN: Final = "0.0.0+unknown"  # run from a source tree that was not installed


@functools.cache
def version() -> str:
    """The version of the installed distribution."""
    from importlib import metadata  # costs more than it looks; most starts never ask

    try:
        return metadata.version("machine-runtime")
    except metadata.PackageNotFoundError:
        return UNKNOWN
