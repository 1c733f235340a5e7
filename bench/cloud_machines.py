"""Measure the list of machines and work on many machines, with thousands of machines.

`python -m bench cloud_machines [--machines 5000] [--changed 500] [--repeat 5]`

The cloud runs in this process, on SQLite in memory; requests are passed directly to its application, without a socket.
Machines are spread over 20 locations; each has reported a version, a tenth have problems, a tenth have tags. Times are
those of the processor, in milliseconds: of a page of the list, of its update while it is open, of the preview of a job,
and of a job for each machine (without the pauses between machines).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import trio

from bench.cloud_pages import Person
from cloud.domain.configurations import configurations
from cloud.domain.fleet.listing import FleetFilter
from cloud.domain.machines import machines
from cloud.domain.organizations import tags, tenants
from cloud.domain.triggering.presence import came_online
from cloud.server.memory import MemoryCloud, open_cloud
from cloud.services.fleet.runner import run_next
from cloud.services.machines.fleet import FleetService
from cloud.store.sql import Sql
from cloud.values.author import KEY, Author
from rpc.api import FLEET

LOCATIONS: Final = 20
PER_TRANSACTION: Final = 100
PAGES: Final = (
    "/",
    "/?sort=state",
    "/?sort=location",
    "/?sort=problems",
    "/?state=degraded",
    "/?tag=red",
    "/?q=m01234",
    "/?columns=state,location,version,agent,revision,fragments,seen,platform,problems,tags",
)
ARM: Final = {"components": [{"name": "arm", "api": "rdk:component:arm", "model": "fake", "attributes": {"speed": 1}}]}
WORK: Final = {"kind": "set_value", "path": "components.arm.attributes.speed", "value_json": "3"}


async def fill(cloud: MemoryCloud, count: int) -> list[str]:
    """Create machines; return their ids."""
    store, clock = cloud.cloud.store, cloud.cloud.clock
    owner, author = cloud.first.organization, Author(KEY, cloud.first.id)
    places = await store.write(
        lambda sql: [tenants.create_location(sql, owner, f"hall {n:02}", "", clock()) for n in range(LOCATIONS)]
    )
    ids: list[str] = []

    def batch(sql: Sql, start: int) -> list[str]:
        created = []
        for number in range(start, min(count, start + PER_TRANSACTION)):
            subject = machines.create_machine(sql, places[number % LOCATIONS], f"m{number:05}", clock())
            part = machines.parts(sql, subject)[0].id
            configurations.save(sql, part, ARM, author, clock())
            report = {"version": f"1.{number % 3}.0", "revision": "2", "platform": "linux/arm64"}
            machines.note_seen(sql, part, clock(), report | ({} if number % 10 else {"problems": 2}))
            came_online(sql, [part], clock())
            if number % 10 == 1:
                tags.change(sql, subject, ["red", f"batch {number % 7}"])
            created.append(subject)
        return created

    for start in range(0, count, PER_TRANSACTION):
        ids += await store.write(lambda sql, start=start: batch(sql, start))  # type: ignore[misc]
    return ids


async def processor(repeat: int, step: Callable[[], Awaitable[Any]]) -> list[float]:
    """Return the processor time of each of several executions, in milliseconds."""
    await step()
    results = []
    for _ in range(repeat):
        begin = time.process_time()
        await step()
        results.append((time.process_time() - begin) * 1000)
    return results


def _line(name: str, values: Sequence[float], more: str = "") -> None:
    print(f"{name:90} {statistics.median(values):8.2f} ms {more}", flush=True)


async def measure(count: int, changed: int, repeat: int) -> None:
    """Print the measurements."""
    async with open_cloud() as cloud:
        begin = time.monotonic()
        ids = await fill(cloud, count)
        print(f"{count} machines created in {time.monotonic() - begin:.0f} s", flush=True)
        person = Person(cloud)
        await person.enter()
        for path in PAGES:
            person.store.count = 0
            values = await processor(repeat, lambda path=path: person.get(path))  # type: ignore[misc]
            body = await person.get(path)
            _line(path, values, f"{len(body) / 1000:.0f} KB, {person.store.count // (repeat + 2)} statements")
        service = FleetService(cloud.cloud, Author(KEY, cloud.first.id))
        _line("update of an open list", await processor(repeat, lambda: _update(service)))
        client = cloud.client()

        async def call(method: str, **arguments: Any) -> Any:
            return await client.call(FLEET, "", method, **arguments)

        _line("preview for all", await processor(repeat, lambda: call("preview_fleet_job", every=True, work=WORK)))
        begin = time.process_time()
        job = await call("start_fleet_job", machine_ids=ids[:changed], work=WORK)
        _line(f"start of a job on {changed} machines", [(time.process_time() - begin) * 1000])
        begin, clock = time.process_time(), time.monotonic()
        while await run_next(cloud.cloud, pace=0):
            pass
        _line("job, for each machine", [(time.process_time() - begin) * 1000 / changed])
        print(f"{changed / (time.monotonic() - clock):.0f} machines/s without pauses", flush=True)
        state = (await call("get_fleet_job", id=job))["job"]
        assert state["changed"] == changed, json.dumps(state, default=str)


async def _update(service: FleetService) -> None:
    await service.page(FleetFilter(), "name", 100, choices=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurement; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=5000)
    parser.add_argument("--changed", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    trio.run(measure, options.machines, options.changed, options.repeat)
    return 0


if __name__ == "__main__":
    main()
