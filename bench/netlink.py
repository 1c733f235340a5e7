"""Compare our rtnetlink requests on Trio with pyroute2's AsyncIPRoute on asyncio: `python -m bench netlink`.

Both run in one network namespace that the program creates: a dump of 20 links, and additions and deletions of
addresses. Rounds alternate; the figures are medians of them. Exits 1 if ours takes longer than the peer. Needs root, or
user namespaces.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from ipaddress import IPv4Interface
from typing import Final

import trio

BUDGET: Final = 1.0  # times the peer
LINKS: Final = 10  # pairs
INSIDE: Final = "--inside"


def main(argv: Sequence[str]) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser("python -m bench netlink", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=200, help="requests of each kind in a round")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.inside:
        return _compare(options.rounds, options.requests)
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    words = [sys.executable, "-m", "bench.netlink", INSIDE, f"--rounds={options.rounds}"]
    return subprocess.call(["unshare", "--net", *mapped, *words, f"--requests={options.requests}"])


def _compare(rounds: int, requests: int) -> int:
    for number in range(LINKS):
        words = ["link", "add", f"a{number}", "type", "veth", "peer", "name", f"b{number}"]
        subprocess.run(["ip", *words], check=True)
    sides: dict[str, Callable[[int], tuple[float, float]]] = {"ours": _ours, "pyroute2": _peer}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in list(sides)[:: 1 if turn % 2 else -1]:
            times[name].append(sides[name](requests))
    missed = False
    for column, what in enumerate(("dump of links", "address added and deleted")):
        ours, peer = (statistics.median(row[column] for row in times[name]) for name in ("ours", "pyroute2"))
        print(f"{what:28} ours {1e3 * ours:.3f} ms, pyroute2 {1e3 * peer:.3f} ms: {ours / peer:.2f} times")
        missed |= ours > BUDGET * peer
    if missed:
        print(f"above the budget of {BUDGET:g} times pyroute2")
    return int(missed)


def _ours(requests: int) -> tuple[float, float]:
    from netmgr.netlink.route import Kernel
    from netmgr.netlink.socket import NetlinkRequests

    async def measure() -> tuple[float, float]:
        with NetlinkRequests() as socket:
            kernel = Kernel(socket)
            index = next(link.index for link in await kernel.links() if link.name == "a0")
            begin = time.perf_counter()
            for _ in range(requests):
                await kernel.dump_links()
            middle = time.perf_counter()
            for number in range(requests):
                address = IPv4Interface(f"10.9.{number // 250}.{number % 250 + 1}/32")
                await kernel.add_address(index, address)
                await kernel.delete_address(index, address)
            return (middle - begin) / requests, (time.perf_counter() - middle) / requests

    return trio.run(measure)


def _peer(requests: int) -> tuple[float, float]:
    from pyroute2 import AsyncIPRoute

    async def measure() -> tuple[float, float]:
        async with AsyncIPRoute() as route:
            (index,) = await route.link_lookup(ifname="a0")
            begin = time.perf_counter()
            for _ in range(requests):
                [message async for message in await route.link("dump")]
            middle = time.perf_counter()
            for number in range(requests):
                address = f"10.9.{number // 250}.{number % 250 + 1}"
                await route.addr("add", index=index, address=address, prefixlen=32)
                await route.addr("del", index=index, address=address, prefixlen=32)
            return (middle - begin) / requests, (time.perf_counter() - middle) / requests

    return asyncio.run(measure())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
