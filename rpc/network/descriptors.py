"""Limit of connections by available file descriptors."""

from __future__ import annotations

import sys
from typing import Final

RESERVED: Final = 200  # for files, the database, webhooks and libraries
MOST: Final = 50_000  # beyond this, memory is the limit

if sys.platform == "win32":

    def raise_descriptors() -> None:
        """Do nothing: Windows limits neither sockets nor handles in a way that a program could change."""

    def connections(most: int = MOST) -> int:
        """Return `most`: sockets are limited by memory only."""
        return most

else:
    import resource

    def raise_descriptors() -> None:
        """Raise the soft limit of file descriptors to the hard limit.

        Child processes inherit the limit; their select(2) still supports only descriptors below 1024.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(
                resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else MOST + RESERVED, hard)
            )

    def connections(most: int = MOST) -> int:
        """Return the number of descriptors for client connections, at most `most`; the rest stays reserved."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return most
        return max(1, min(soft - min(RESERVED, soft // 2), most))
