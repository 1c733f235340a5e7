"""How many connections this process may hold: each is a file descriptor."""

from __future__ import annotations

import resource
from typing import Final

RESERVED: Final = 200  # for files, the database, webhooks and what libraries open
MOST: Final = 50_000  # beyond that memory is the limit


def raise_descriptors() -> None:
    """Take as many descriptors as the system grants. Child processes inherit it; select(2) there ends at 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else MOST + RESERVED, hard))


def connections(most: int = MOST) -> int:
    """How many of the descriptors clients may have, at most `most`; the others are for everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    return max(1, min(soft - min(RESERVED, soft // 2), most))
