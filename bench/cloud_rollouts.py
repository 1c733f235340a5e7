"""Measure a rollout of a fragment to thousands of machines.

`python -m bench cloud_rollouts [--machines 5000] [--repeat 5]`

The cloud runs in this process, on SQLite in memory. Every machine uses the fragment and is online. Times are those of
the processor, in milliseconds: of the preview and the start, of a machine that reports and is looked at,
of the pages, and of the way back; `longest` is the longest time for which the event loop was not free.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from bench.cloud_machines import PER_TRANSACTION, _line, fill, processor
from bench.cloud_pages import Person
from cloud.domain.configurations import configurations, fragments
from cloud.domain.machines import machines
from cloud.domain.rollouts import stepping
from cloud.server.memory import APP, MemoryCloud, open_cloud
from cloud.store.sql import Sql
from cloud.values.author import KEY, Author
from rpc.api import ROLLOUTS

_TICK = 0.002  # seconds


class _Loop:
    """The longest time for which the event loop was not free, in milliseconds."""

    longest = 0.0

    async def watch(self) -> None:
        while True:
            begin = time.perf_counter()
            await trio.sleep(_TICK)
            self.longest = max(self.longest, (time.perf_counter() - begin - _TICK) * 1000)


@asynccontextmanager
async def _watched() -> AsyncIterator[_Loop]:
    loop = _Loop()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(loop.watch)
        yield loop
        nursery.cancel_scope.cancel()


async def _use(cloud: MemoryCloud, ids: Sequence[str], fragment: str) -> list[str]:
    """Let all machines use the fragment; return their parts."""
    author, clock = Author(KEY, cloud.first.id), cloud.cloud.clock
    parts: list[str] = []

    def batch(sql: Sql, some: Sequence[str]) -> list[str]:
        created = [machines.parts(sql, subject)[0].id for subject in some]
        for part in created:
            configurations.save(sql, part, {"fragments": [fragment]}, author, clock())
        return created

    for start in range(0, len(ids), PER_TRANSACTION):
        some = ids[start : start + PER_TRANSACTION]
        parts += await cloud.cloud.store.write(lambda sql, some=some: batch(sql, some))  # type: ignore[misc]
    return parts


async def _report(cloud: MemoryCloud, parts: Sequence[str]) -> None:
    """Let machines report the version of the configuration that they get."""

    def batch(sql: Sql, some: Sequence[str]) -> None:
        for part in some:
            record = machines.part(sql, part)
            version = configurations.resolution(sql, record)[0]
            machines.note_seen(sql, part, cloud.cloud.clock(), {**record.reported, "revision": version})

    for start in range(0, len(parts), PER_TRANSACTION):
        some = parts[start : start + PER_TRANSACTION]
        await cloud.cloud.store.write(lambda sql, some=some: batch(sql, some))  # type: ignore[misc]


async def _steps(cloud: MemoryCloud) -> None:
    while await cloud.cloud.store.write(lambda sql: stepping.step(sql, cloud.cloud.clock())):
        pass


async def measure(count: int, repeat: int) -> None:
    """Print the measurements."""
    async with open_cloud() as cloud, _watched() as loop:
        owner, client = cloud.first.organization, cloud.client()
        created = await client.call(APP, "", "create_fragment", name="arms", organization_id=owner, config={})
        fragment = created["id"]
        parts = await _use(cloud, await fill(cloud, count), fragment)
        await _report(cloud, parts)

        async def call(method: str, **arguments: Any) -> Any:
            return await client.call(ROLLOUTS, "", method, **arguments)

        async def timed(name: str, method: str, **arguments: Any) -> Any:
            loop.longest, begin = 0.0, time.process_time()
            result = await call(method, **arguments)
            await trio.sleep(2 * _TICK)
            _line(name, [(time.process_time() - begin) * 1000], f"longest {loop.longest:.0f} ms")
            return result

        text = '{"log": [{"pattern": "a", "level": "info"}]}'
        revision = await call("update_fragment_for_rollout", fragment_id=fragment, fragment_config_json=text)
        plan = {
            "kind": "fragment",
            "subject": fragment,
            "revision": revision,
            "stages": [{"percent": 5}, {"percent": 100}],
            "by_hand": True,
        }
        await timed("preview", "preview_staged_rollout", organization_id=owner, plan=plan)
        rollout = await timed("start", "start_staged_rollout", organization_id=owner, plan=plan)
        where = {"organization_id": owner, "id": rollout}
        await timed("next stage, with all other machines", "change_staged_rollout", **where, action="next")
        loop.longest, begin = 0.0, time.process_time()
        await _steps(cloud)
        spent = (time.process_time() - begin) * 1000 / count
        _line("a look at each machine", [spent], f"longest {loop.longest:.0f} ms")
        await _report(cloud, parts)
        loop.longest, begin = 0.0, time.process_time()
        await _steps(cloud)
        spent = (time.process_time() - begin) * 1000 / count
        _line("the same after its report", [spent], f"longest {loop.longest:.0f} ms")
        person = Person(cloud)
        await person.enter()
        for path in ("/rollouts", f"/rollouts/{owner}/{rollout}", "/rollouts/versions", "/rollouts/versions?q=m01234"):
            person.store.count, loop.longest = 0, 0.0
            values = await processor(repeat, lambda path=path: person.get(path))  # type: ignore[misc]
            body = await person.get(path)
            more = f"{len(body) / 1000:.0f} KB, {person.store.count // (repeat + 2)} statements"
            _line(path.replace(owner, "…").replace(rollout, "…"), values, f"{more}, longest {loop.longest:.0f} ms")
        record = await cloud.cloud.store.read(lambda sql: machines.part(sql, parts[0]))

        async def resolve() -> None:
            await cloud.cloud.store.read(lambda sql: [configurations.resolution(sql, record) for _ in range(100)])

        _line("100 configurations during a rollout", await processor(repeat, resolve))
        await timed("back", "change_staged_rollout", **where, action="back")
        assert (await cloud.cloud.store.read(lambda sql: fragments.usable(sql, owner, fragment, "", parts[0]))) == 1
        _line("100 configurations without one", await processor(repeat, resolve))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurement; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    trio.run(measure, options.machines, options.repeat)
    return 0


if __name__ == "__main__":
    main()
