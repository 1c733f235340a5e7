"""Fill the database of a cloud that does not run with a fleet: machines, a fragment, log lines, readings, alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from bench.cloud_process import Database
from cloud.domain.alerts import rules, states
from cloud.domain.alerts.life import Level, Observed
from cloud.domain.alerts.rule import Condition, Kind, Rule
from cloud.domain.alerts.subjects import subject_of
from cloud.domain.configurations import configurations, fragments
from cloud.domain.data import datasets, readings, sources
from cloud.domain.data.readings import new_reading
from cloud.domain.machines import logs, machines
from cloud.domain.machines.logs import LogRecord
from cloud.domain.organizations import tags, tenants
from cloud.domain.organizations.first import FirstKey, create_owner
from cloud.domain.permissions import audit
from cloud.domain.triggering.presence import came_online
from cloud.store.commands import opened_for_command
from cloud.store.sql import Sql
from cloud.values.author import KEY, Author
from cloud.values.times import now as present

PER_LOCATION: Final = 50
PER_TRANSACTION: Final = 50
LINES: Final = 10  # of each machine
READINGS: Final = 50  # of every tenth machine
CHANGES: Final = 5  # entries of the audit log for each machine
CONFIGURATION: Final = {
    "components": [
        {"name": f"sensor-{number}", "api": "rdk:component:sensor", "model": "fake", "attributes": {"limit": number}}
        for number in range(10)
    ]
}
WARM: Final = Rule(
    name="Warm", kind=Kind.READING, condition=Condition(path="temperature", comparison="gte", threshold=30.0)
)


@dataclass
class Filled:
    """What the database has. `parts` are ids and secrets of the parts of `machines`, in the same order."""

    owner: FirstKey
    fragment: str = ""
    rule: str = ""
    locations: list[str] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)
    parts: list[list[str]] = field(default_factory=list)


async def fill(folder: Path, database: Database, count: int) -> Filled:
    """Fill the database in an empty folder with `count` machines, all of which fire one alert of the rule `Warm`."""
    begin = present()
    async with opened_for_command(folder / "cloud.db", database.url) as store:
        result = Filled(await store.write(lambda sql: create_owner(sql, "Works", begin)))
        author = Author(KEY, result.owner.id)

        def common(sql: Sql) -> None:
            owner = result.owner.organization
            result.locations = [
                tenants.create_location(sql, owner, f"Hall {number:03}", "", begin)
                for number in range(-(-count // PER_LOCATION))
            ]
            new = fragments.new_candidate(sql, owner, {"log": [{"pattern": "a", "level": "info"}]}, "private")
            fragments.create_fragment(sql, owner, "arms", new, author, begin)
            result.fragment = new.id
            result.rule = rules.save(sql, owner, "", WARM, begin)
            for number in range(20):
                datasets.create(sql, owner, f"pictures {number}", begin)

        await store.write(common)
        for start in range(0, count, PER_TRANSACTION):
            numbers = range(start, min(count, start + PER_TRANSACTION))
            await store.write(lambda sql, numbers=numbers: _machines(sql, result, numbers, author))  # type: ignore[misc]
    return result


def _machines(sql: Sql, result: Filled, numbers: Sequence[int], author: Author) -> None:
    now, owner = present(), result.owner.organization
    rule = rules.rule(sql, owner, result.rule)
    for number in numbers:
        name, location = f"sim-{number + 1:04}", result.locations[number // PER_LOCATION]
        machine = machines.create_machine(sql, location, name, now)
        (part,) = machines.parts(sql, machine)
        document: dict[str, Any] = {**CONFIGURATION, "fragments": [{"id": result.fragment}]}
        configurations.save(sql, part.id, document, author, now)
        report: dict[str, Any] = {"version": f"1.{number % 3}.0", "revision": "2", "platform": "linux/arm64"}
        report |= {"processor_pct": number % 90, "disk_pct": 40, "temperature_c": 50}
        machines.note_seen(sql, part.id, now, report if number % 10 else report | {"problems": 2})
        came_online(sql, [part.id], now)
        if number % 10 == 1:
            tags.change(sql, machine, ["red", f"batch {number % 7}"])
        _log(sql, part.id, number, now)
        for change in range(CHANGES):
            detail = {"name": name, "machine": machine}
            audit.note(sql, owner, author, "UpdateRobotPart", part.id, detail, now - timedelta(hours=change))
        if number % 10 == 0:
            _keep(sql, part.id, number, now)
        subject, _ = subject_of(sql, owner, part.id, "sensor:freezer:Readings")
        states.apply(sql, rule, subject, [Observed(now, Level.BAD, 35.0), Observed(now, Level.BAD, 36.0)], now)
        result.machines.append(machine)
        result.parts.append([part.id, machines.secrets_of(sql, part.id)[0][1]])


def _log(sql: Sql, part: str, number: int, now: datetime) -> None:
    levels = ("info", "warn", "error")
    lines = [
        LogRecord(
            now - timedelta(minutes=7 * index + number % 60),
            levels[(number + index) % 3],
            "engine",
            f"the resource drive-{number % 40} failed: no answer from the bus",
        )
        for index in range(LINES)
    ]
    logs.append(sql, part, lines[::-1], now)


def _keep(sql: Sql, part: str, number: int, now: datetime) -> None:
    source = sources.source_of(sql, part, "sensor", "freezer", "Readings", {})
    moments = [now - timedelta(seconds=10 * index) for index in range(READINGS)]
    rows = [new_reading(at, at, {"readings": {"temperature": number % 40}}) for at in moments]
    readings.keep(sql, [readings.NewUpload(None, source, (), rows, now)])
