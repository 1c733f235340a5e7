"""Reads all machines of a caller in several transactions, for calls that return the whole fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from cloud.domain.fleet import fleet
from cloud.domain.fleet.fleet import FleetMachine
from cloud.domain.fleet.listing import FleetFilter, Listing
from cloud.domain.fleet.positions import Position
from cloud.services.common.base import Service
from cloud.store.sql import Sql

T = TypeVar("T")

BATCH: Final = 250
"""Machines in one transaction. Python objects of thousands would delay the calls of machines."""


async def for_all_machines(service: Service, work: Callable[[FleetMachine], Iterable[T]]) -> list[T]:
    """Return what `work` returns for each machine that the caller may see, ordered by the names of machines.

    A machine that is renamed, created or deleted meanwhile may be missing.
    """
    results: dict[str, list[T]] = {}
    after: Position | None = None
    while True:

        def read(sql: Sql, after: Position | None = after) -> tuple[dict[str, list[T]], list[Position]]:
            rows = Listing(sql, service.author).page(FleetFilter(), "name", after, BATCH)
            machines = fleet.chosen(sql, service.author, [row.machine for row in rows])
            return {machine.id: list(work(machine)) for machine in machines}, rows

        batch, rows = await service.read(read)
        results |= batch
        if len(rows) < BATCH:
            return [result for machine in results.values() for result in machine]
        after = rows[-1]
