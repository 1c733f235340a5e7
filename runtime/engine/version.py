"""Versions of this server and of the API."""

from __future__ import annotations

import functools
from typing import Final

PLATFORM: Final = "rdk"  # name of a machine server on the wire
API_VERSION: Final = "v0.1.601"  # of the published API in the pinned viam-sdk
UNKNOWN: Final = "0.0.0+unknown"  # for a source tree that is not installed


@functools.cache
def version() -> str:
    """Return the version of the installed distribution."""
    from importlib import metadata  # slow to import, and not needed in most runs

    try:
        return metadata.version("machine-runtime")
    except metadata.PackageNotFoundError:
        return UNKNOWN
