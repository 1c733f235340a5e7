"""A fleet of simulated machines with the data of up to years, to find out how much a cloud will store.

Readings older than RECENT go straight into segments, as `--seal-after` would have made them; newer ones are rows. Log
lines are those of the time for which a cloud keeps them. The organization is new, so that deleting it removes all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Final

import trio

from cloud.blobs import Blobs
from cloud.commands import signals
from cloud.commands.signals import SECOND, SENSORS, Pause, sensor_name
from cloud.domain.data import readings, sources
from cloud.domain.data.readings import NewReading, text_of
from cloud.domain.data.segments import listed, sealing
from cloud.domain.data.segments.columns import KEYS, Columns, FieldKind
from cloud.domain.data.segments.listed import SegmentFacts
from cloud.domain.data.segments.merging import SPAN
from cloud.domain.data.sources import DataSource
from cloud.domain.machines import logs, machines
from cloud.domain.machines.logs import MAX_BATCH, RETENTION, LogRecord
from cloud.domain.organizations import tenants
from cloud.domain.organizations.first import FirstKey, create_owner
from cloud.store.sql import Sql, Store
from cloud.values.times import moment_of, stored
from support import Worker

RECENT: Final = timedelta(days=1)
AT_ONCE: Final = 4  # machines: their writes share commits, and one computes while others wait for the disk
IN_LOCATION: Final = 50  # machines
TOGETHER: Final = 1000  # readings that become rows in one transaction
DELAY: Final = 60 * SECOND  # between capture and arrival
FIRST: Final = 10**15
"""First number of a simulated reading in a segment. Numbers of readings that arrive count from 1, so none is equal."""

LINES: Final = (
    ("info", "engine", "started"),
    ("info", "agent.update", "the version is current"),
    ("warn", "models.camera", "no picture within 5 s: trying again"),
    ("error", "engine", "the resource drive failed: no answer from the bus; the next attempt is in 8 s"),
    ("debug", "netmgr.wifi", "the signal is weak"),
)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What to simulate."""

    machines: int
    days: int
    sensors: int  # of each machine
    interval: int  # seconds between two readings of a sensor
    lines: int  # log lines of a machine and day
    seed: int


@dataclass(slots=True)
class SimulationProgress:
    """What has been stored."""

    machines: int = 0
    readings: int = 0
    segments: int = 0
    lines: int = 0


Report = Callable[[SimulationProgress], None]


async def simulate(store: Store, blobs: Blobs, fleet: Fleet, name: str, now: datetime, report: Report) -> FirstKey:
    """Create an organization with a simulated fleet, whose data ends now; return its owner's key.

    `report` is called after each machine. What a failed or cancelled call has stored stays: delete the organization.
    """
    owner = await store.write(lambda sql: create_owner(sql, name, now))
    progress, numbers = SimulationProgress(), iter(range(fleet.machines))
    async with (worker := Worker("simulation")).opened(), trio.open_nursery() as nursery:
        locations = await store.write(partial(_locations, owner=owner, fleet=fleet, now=now))
        for _ in range(min(AT_ONCE, fleet.machines)):
            nursery.start_soon(_machines, store, blobs, worker, fleet, owner, locations, numbers, now, progress, report)
    return owner


def _locations(sql: Sql, owner: FirstKey, fleet: Fleet, now: datetime) -> list[str]:
    count = -(-fleet.machines // IN_LOCATION)
    return [
        owner.location,
        *(
            tenants.create_location(sql, owner.organization, f"Site {number}", "", now)
            for number in range(2, count + 1)
        ),
    ]


async def _machines(
    store: Store,
    blobs: Blobs,
    worker: Worker,
    fleet: Fleet,
    owner: FirstKey,
    locations: Sequence[str],
    numbers: Iterator[int],
    now: datetime,
    progress: SimulationProgress,
    report: Report,
) -> None:
    for number in numbers:  # shared: each number goes to one task
        chance = Random(f"{fleet.seed} {number}")
        begin = now - timedelta(days=fleet.days)
        location = locations[number // IN_LOCATION]
        part = await store.write(partial(_new_part, location=location, name=f"sim-{number + 1:04}", now=begin))
        pauses = signals.pauses(chance, stored(begin), stored(now))
        for sensor in range(fleet.sensors):
            await _sensor(store, blobs, worker, fleet, owner.organization, part, sensor, chance, pauses, now, progress)
        for lines in _batches(list(_lines(fleet, chance, pauses, now)), MAX_BATCH):
            await store.write(partial(_log, part=part, lines=lines))
            progress.lines += len(lines)
        progress.machines += 1
        report(progress)


def _new_part(sql: Sql, location: str, name: str, now: datetime) -> str:
    machine = machines.create_machine(sql, location, name, now)
    (part,) = machines.parts(sql, machine)
    return part.id


async def _sensor(
    store: Store,
    blobs: Blobs,
    worker: Worker,
    fleet: Fleet,
    organization: str,
    part: str,
    sensor: int,
    chance: Random,
    pauses: Sequence[Pause],
    now: datetime,
    progress: SimulationProgress,
) -> None:
    begin, end = stored(now - timedelta(days=fleet.days)), stored(now)
    name, quantities = sensor_name(sensor), SENSORS[sensor % len(SENSORS)][1]

    def captured() -> tuple[list[int], dict[str, list[float]]]:
        times = list(signals.moments(chance, begin, end, fleet.interval * SECOND, pauses))
        return times, {each.name: signals.values(chance, each, times) for each in quantities}

    def source_number(sql: Sql) -> tuple[DataSource, int]:
        source = sources.source_of(sql, part, "sensor", name, "Readings", {})
        return source, sources.number_of(sql, source)

    times, values = await worker.run(captured)
    source, number = await store.write(source_number)
    recent = stored(now - RECENT)
    old = next((place for place, moment in enumerate(times) if moment >= recent), len(times))
    for first, last in _segments(times[:old]):
        columns = _columns(times, values, first, last, number)
        facts = _facts(times, values, first, last, number)
        await sealing.keep_columns(
            store, blobs, worker.run, organization, columns, facts, lambda: now, lambda sql: None
        )
        progress.segments += 1
    for places in _batches(range(old, len(times)), TOGETHER):
        new = [
            (times[place], times[place], text_of({"readings": {key: column[place] for key, column in values.items()}}))
            for place in places
        ]
        await store.write(partial(_keep, source=source, new=new, now=now))
    progress.readings += len(times)


def _keep(sql: Sql, source: DataSource, new: Sequence[NewReading], now: datetime) -> None:
    readings.keep(sql, [readings.NewUpload(None, source, (), new, now)])


def _segments(times: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of segments, as sealing and merging would have made them."""
    first = 0
    week = sealing.SPAN // timedelta(microseconds=1)
    while first < len(times):
        last = first
        for last in range(first, min(len(times), first + sealing.MOST)):
            span = times[last] - times[first]
            if span > week and (last - first >= sealing.SOME or span > SPAN // timedelta(microseconds=1)):
                break
        else:
            last += 1
        yield first, last
        first = last


def _columns(times: Sequence[int], values: dict[str, list[float]], first: int, last: int, source: int) -> Columns:
    requested = list(times[first:last])
    keys = {
        "source": [source] * len(requested),
        "requested": requested,
        "received": requested,
        "synced": [moment + DELAY for moment in requested],
        "number": list(range(FIRST + first, FIRST + last)),
    }
    return Columns(
        {name: keys[name] for name in KEYS},
        {f"readings.{name}": FieldKind.NUMBER for name in values},
        {f"readings.{name}": list[Any](column[first:last]) for name, column in values.items()},
        [None] * len(requested),
    )


def _facts(times: Sequence[int], values: dict[str, list[float]], first: int, last: int, source: int) -> SegmentFacts:
    """Return facts about a segment, with the number of characters estimated from the samples."""
    places = sorted({first, last - 1, *range(first, last, max(1, (last - first) // listed.SAMPLES))})
    chosen = [row for place in places for row in _columns(times, values, place, place + 1, source).rows()]
    facts = listed.facts_of(chosen)
    count = last - first
    return replace(facts, count=count, characters=facts.characters * count // len(chosen))


def _lines(fleet: Fleet, chance: Random, pauses: Sequence[Pause], now: datetime) -> Iterator[LogRecord]:
    """Yield log lines of the time for which they are kept: some at any time, and several after a restart."""
    begin = now - min(RETENTION, timedelta(days=fleet.days))
    span = (now - begin) / timedelta(days=1)
    moments = [begin + chance.random() * (now - begin) for _ in range(round(span * fleet.lines))]
    restarts = [moment_of(pause.end) for pause in pauses if pause.restart and moment_of(pause.end) >= begin]
    moments += [moment + timedelta(seconds=second) for moment in restarts for second in range(min(20, fleet.lines))]
    for moment in sorted(min(moment, now) for moment in moments):
        level, logger, message = chance.choices(LINES, (10, 5, 2, 1, 4))[0]
        yield LogRecord(moment, level, logger, message, host="simulated")


def _log(sql: Sql, part: str, lines: Sequence[LogRecord]) -> None:
    logs.append(sql, part, lines, lines[-1].time)


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
