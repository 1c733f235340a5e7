"""Write to an outbox and to a cached configuration as fast as possible until killed, and report each step.

`python -m tests.e2e.logs.victim FOLDER` prints a line after each step: `appended N` (the kernel has it), `durable N`
(the disk has it), `acknowledged N`, `cached N`. With `check` as a second argument it prints what is stored as JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import trio

from support.worker import Worker
from telemetry.outbox.queue import Gap, Outbox
from uplink.cached import load, path_of, save

T = TypeVar("T")
SENSORS = 20


def data_of(number: int) -> bytes:
    """Return the content of record `number`: of various lengths, and different for each number."""
    return (f"{number}:" + "x" * (number * 37 % 900)).encode()


def document_of(number: int) -> bytes:
    """Return the configuration with the number `number`, which occurs in all parts of it."""
    return json.dumps({"components": [{"name": f"s{index}-of-{number}"} for index in range(SENSORS)]}).encode()


def tell(what: str, number: int) -> None:
    """Print a line with one write, so that it is printed completely or not at all."""
    os.write(1, f"{what} {number}\n".encode())


async def write(folder: Path) -> None:
    """Write until killed."""
    worker = Worker("disk")
    async with worker.opened(), trio.open_nursery() as nursery:
        nursery.start_soon(fill, Outbox(folder / "outbox", worker.run, segment_bytes=16 * 1024))
        nursery.start_soon(cache, path_of(folder, "part"), worker.run)


async def fill(outbox: Outbox) -> None:
    """Append in bursts, sync to the disk, acknowledge a part."""
    random.seed()
    await outbox.sync()
    while True:
        for _ in range(random.randrange(1, 60)):
            number = outbox.append(data_of(outbox.appended + 1))
            await trio.lowlevel.checkpoint()
        tell("appended", number)
        tell("durable", await outbox.sync())
        batch = await outbox.read(random.randrange(1, 50))
        if batch.last:
            outbox.acknowledge(batch.last)
            tell("acknowledged", batch.last)


async def cache(path: Path, run: Any) -> None:
    """Save one configuration after another."""
    cached = load(path)
    number = numbers_of(bytes(cached.document)).pop() if cached is not None else 0
    while True:
        number += 1
        await save(path, document_of(number), run)
        tell("cached", number)


def numbers_of(document: bytes) -> set[int]:
    """Return the numbers of the saves that a document consists of: one, if it is consistent."""
    return {int(entry["name"].rpartition("-")[2]) for entry in json.loads(document)["components"]}


async def check(folder: Path) -> dict[str, Any]:
    """Return the stored state: numbers of records, whether they are correct, gaps; numbers in the configuration."""

    async def here(function: Callable[[], T]) -> T:
        return function()

    outbox = Outbox(folder / "outbox", here)
    acknowledged = outbox.acknowledged
    await outbox.sync()
    items = (await outbox.read(10_000_000)).items
    outbox.close()
    records = [item for item in items if not isinstance(item, Gap)]
    cached = load(path_of(folder, "part"))
    return {
        "acknowledged": acknowledged,
        "first": records[0].number if records else None,
        "last": records[-1].number if records else acknowledged,
        "gaps": [tuple(item) for item in items if isinstance(item, Gap)],
        "wrong": [record.number for record in records if record.data != data_of(record.number)],
        "cached": sorted(numbers_of(bytes(cached.document))) if cached is not None else None,
        "whole": cached is not None and len(json.loads(bytes(cached.document))["components"]) == SENSORS,
    }


def judge(result: dict[str, Any], said: str, before: dict[str, Any] | None, *, power: bool) -> None:
    """Raise AssertionError unless everything reported is stored; after a power cut, everything reported as durable.

    `before` is the result of the previous check, which this run may not have changed.
    """
    last: dict[str, int] = {"acknowledged": before["acknowledged"] if before is not None else 0}
    for line in said.splitlines():
        what, _, number = line.partition(" ")
        if number.isdecimal():
            last[what] = int(number)
    assert result["wrong"] == [], result
    # A disk writes unflushed data in any order, so records lost with the power may have later records behind them.
    lost_from = last.get("durable", 0) if power else result["last"]
    assert all(first > lost_from for first, _ in result["gaps"]), (result, last)
    assert result["acknowledged"] <= result["last"], result
    if not power:  # after a power cut, reports may have been in transit; here at most one was not printed yet
        assert result["acknowledged"] <= last["acknowledged"] + 50, (result, last)
    assert result["last"] >= last.get("durable" if power else "appended", 0), (result, last)
    assert result["first"] in (None, result["acknowledged"] + 1), (result, last)
    assert len(result["cached"] or [0]) == 1, result
    assert (result["cached"] or [0])[0] >= last.get("cached", 0), (result, last)
    assert result["cached"] is None or result["whole"], result


if __name__ == "__main__":
    place = Path(sys.argv[1])
    if sys.argv[2:] == ["check"]:
        print(json.dumps(trio.run(check, place)))
    else:
        trio.run(partial(write, place))
