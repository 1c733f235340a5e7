"""Print the heap that a micro server needs, for docs/performance.md: `python -m tests.e2e.micro.heap`.

The program is the one of 32 bits with the server frozen into it. Used bytes are those after a collection, read by a
call of one of the clients. The smallest heap is a multiple of 2 KiB at which all clients are answered ten times.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from schema import MachineError
from tests.e2e.micro.build import make_ready
from tests.e2e.micro.machines import CAR, SELF, SMALL, component
from tests.e2e.micro.program import FIRMWARE, MicroServer, micro_server
from tests.e2e.micro.test_cloud import joined

KIB: Final = 1024
LARGE: Final = 128 * KIB
MANY: Final = {"components": [SELF, *(component("sensor", f"sensor-{number}", "fake") for number in range(31))]}
DOCUMENTS: Final = {"1 component": SMALL, "6 components (a car)": CAR, "32 components": MANY}
CLIENTS: Final = (1, 2, 4)
CALLS: Final = 10


@asynccontextmanager
async def clients(server: MicroServer, count: int) -> AsyncIterator[list[ApiClient]]:
    """Yield clients, each with a connection of its own."""
    async with AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(Channel(f"http://{server.address}")) for _ in range(count)]
        yield [ApiClient(channel) for channel in channels]


async def free(client: ApiClient) -> int:
    reply = await client.call("rdk:component:sensor", "self", "get_readings")
    return int(reply["heap_free_bytes"])


async def used(server: MicroServer, count: int) -> int:
    async with clients(server, count) as each:
        for _ in range(CALLS):
            least = [await free(client) for client in each]
        return LARGE - min(least)


async def answers(server: MicroServer, count: int) -> bool:
    try:
        with trio.fail_after(10):
            await used(server, count)
    except (MachineError, OSError, trio.TooSlowError):
        return False
    return True


def smallest(document: dict[str, Any], count: int, folder: Path) -> int:
    """Return the smallest heap in KiB that serves this many clients."""
    for size in range(20, 128, 2):
        try:
            with micro_server(folder, document, FIRMWARE, f"{size}k", quiet=True) as server:
                if trio.run(answers, server, count):
                    return size
        except AssertionError:
            continue  # it does not even start
    raise AssertionError("no heap is large enough")


async def speed(server: MicroServer) -> tuple[float, float]:
    """Return the median of the time of a call in milliseconds, and calls per second, of one client."""
    async with clients(server, 1) as (client,):
        times = []
        for _ in range(500):
            begin = time.perf_counter()
            await client.call("rdk:component:board", "pins", "get_gpio", pin="13")
            times.append(time.perf_counter() - begin)
    return sorted(times)[250] * 1000, len(times) / sum(times)


def main() -> None:
    if problem := make_ready():
        raise SystemExit(problem)
    with TemporaryDirectory() as name:
        folder = Path(name)
        print(
            "| configuration | listening | "
            + " | ".join(f"{count} clients" for count in CLIENTS)
            + " | smallest heap |"
        )
        for title, document in DOCUMENTS.items():
            with micro_server(folder, document, FIRMWARE, f"{LARGE // KIB}k", quiet=True) as server:
                listening = LARGE - int(server.lines[-1].rpartition(", ")[2].split()[0])
                figures = [trio.run(used, server, count) for count in CLIENTS]
            heaps = [smallest(document, count, folder) for count in CLIENTS]
            cells = [f"{figure:,}" for figure in (listening, *figures)]
            print(f"| {title} | {' | '.join(cells)} | {', '.join(f'{heap} KiB' for heap in heaps)} |", flush=True)
        with micro_server(folder, CAR, FIRMWARE, "64k", quiet=True) as server:
            median, rate = trio.run(speed, server)
            print(f"GetGPIO: median {median:.2f} ms, {rate:.0f} calls/s with one client")
        trio.run(with_a_cloud, folder)


async def with_a_cloud(folder: Path) -> None:
    """Print the heap of a car that is joined to a cloud, with a caller through it."""
    async with joined(folder) as opened:
        await opened.save(CAR)

        async def use(size: str) -> int:
            with micro_server(folder, {"cloud": opened.section}, FIRMWARE, size, quiet=True) as server:
                await trio.to_thread.run_sync(server.until, "configured")
                async with opened.machine() as machine:
                    with trio.fail_after(10):
                        for _ in range(CALLS):
                            least = await free(machine)
                return least

        print(f"joined to a cloud, with a caller through it: {LARGE - await use(f'{LARGE // KIB}k'):,} bytes")
        for size in range(44, 128, 4):
            try:
                await use(f"{size}k")
            except (AssertionError, MachineError, trio.TooSlowError):
                continue
            print(f"smallest heap: {size} KiB")
            return


if __name__ == "__main__":
    main()
