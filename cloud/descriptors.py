"""How many connections this process may hold: each is a file descriptor."""

from __future__ import annotations

import resource
from typing import Final

RESERVED: Final = 200  # for files, the database, webhooks and what libraries open
MOST: Final = 50_000  # beyond that memory is the limit


def connections() -> int:
    """Take as many descriptors as the system grants; how many of them clients may have.

    Machines of one site, or all behind a load balancer, come from one address: there is no smaller bound for each.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        wanted = hard if hard != resource.RLIM_INFINITY else MOST + RESERVED
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(RESERVED, min(soft - RESERVED, MOST))
