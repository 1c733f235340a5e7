"""`machine-cloud simulate`: fill a new cloud with the data of a simulated fleet, to plan what a real one needs."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import trio

from cloud.commands.options import EXIT_FAILED, Options
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from cloud.commands.simulation import Fleet, SimulationProgress
    from cloud.domain.data.segments.listed import SegmentTotals
    from cloud.domain.organizations.first import FirstKey


@click.command("simulate")
@click.option("--machines", type=click.IntRange(1, 20_000), default=100, show_default=True, help="Machines.")
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="Days of data.")
@click.option("--sensors", type=click.IntRange(1, 50), default=2, show_default=True, help="Sensors of each machine.")
@click.option(
    "--every",
    type=click.IntRange(1, 86_400),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two readings of a sensor.",
)
@click.option(
    "--lines",
    type=click.IntRange(0, 10_000),
    default=20,
    show_default=True,
    help="Log lines of each machine and day; a cloud keeps those of 30 days.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Other data with another seed.")
@click.pass_obj
def simulate_command(
    options: Options, machines: int, days: int, sensors: int, every: int, lines: int, seed: int
) -> None:
    """Fill a new, empty cloud with a simulated fleet, and report what it takes.

    The sensors send quantized values with gaps, bursts and restarts. Readings older than a day are in Parquet files, as
    --seal-after makes them. Start machine-cloud with the same --data afterwards to see pages and queries with as much
    data. It stores some 100,000 readings a second.
    """
    if find_spec("pyarrow") is None:
        _fail("a simulation needs pyarrow, which is not installed: install the extra `data`")
    from cloud.commands.simulation import Fleet

    fleet = Fleet(machines, days, sensors, every, lines, seed)
    begin = time.monotonic()
    try:
        owner, progress, stored = trio.run(_simulated, options, fleet)
    except MachineError as error:
        _fail(str(error))
    click.echo(f"{progress.readings:,} readings of {machines:,} machines in {time.monotonic() - begin:.0f} s")
    click.echo("\n".join(_table(options, fleet, progress, stored)))
    click.echo(
        f"The owner's key of this cloud is shown only once:\n"
        f"  organization  {owner.organization}\n"
        f"  key id        {owner.id}\n"
        f"  key           {owner.key}"
    )


async def _simulated(options: Options, fleet: Fleet) -> tuple[FirstKey, SimulationProgress, SegmentTotals]:
    from cloud.blobs.choice import store_of
    from cloud.commands.simulation import SimulationProgress, simulate
    from cloud.domain.data.segments import listed
    from cloud.domain.organizations.first import first_organization
    from cloud.domain.upkeep.identity import bind
    from cloud.store.commands import opened_for_command
    from cloud.values.times import now

    last = SimulationProgress()
    due = time.monotonic()

    def report(progress: SimulationProgress) -> None:
        nonlocal last, due
        last = progress
        if time.monotonic() >= due:
            due = time.monotonic() + 5
            click.echo(
                f"{progress.machines:,} of {fleet.machines:,} machines, {progress.readings:,} readings", err=True
            )

    if not options.postgres:
        options.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    failure: MachineError | None = None
    async with store_of(options.files) as blobs, opened_for_command(options.database, options.postgres) as store:
        try:
            if await store.read(first_organization):
                raise MachineError(
                    "this cloud already has an organization, and simulated data would be among its own",
                    kind=ErrorKind.PRECONDITION,
                    remedy="use a new folder: machine-cloud --data FOLDER simulate",
                )
            await bind(store, blobs)
            owner = await simulate(store, blobs, fleet, "Simulated fleet", now(), report)
            return owner, last, await store.read(listed.figures)
        except MachineError as error:
            failure = error  # raised here, the store's nursery would wrap it in an exception group
    raise failure


def _table(options: Options, fleet: Fleet, progress: SimulationProgress, stored: SegmentTotals) -> list[str]:
    """Return the lines of what grows with what."""
    days = fleet.machines * fleet.days
    rows = [
        ("readings in Parquet files", stored.readings, stored.size),
        ("Parquet files", stored.segments, stored.size),
        ("log lines", progress.lines, 0),
    ]
    if not options.postgres:
        size = sum(path.stat().st_size for path in _database_files(options.database))
        rows.append(("database, with what is not in files yet", progress.readings - stored.readings, size))
    lines = [f"{'':42}{'number':>14}{'MB':>10}{'bytes each':>12}{'KB a machine and day':>22}"]
    for name, number, size in rows:
        each = f"{size / number:,.1f}" if size and number else ""
        lines.append(f"{name:42}{number:>14,}{size / 1e6:>10,.1f}{each:>12}{size / days / 1e3:>22,.2f}")
    return lines


def _database_files(database: Path) -> list[Path]:
    return [path for path in database.parent.glob(f"{database.name}*") if path.is_file()]


def _fail(text: str) -> NoReturn:
    click.echo(f"machine-cloud: {text}", err=True)
    sys.exit(EXIT_FAILED)
