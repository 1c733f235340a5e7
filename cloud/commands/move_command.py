"""`machine-cloud move`: copy the SQLite database to PostgreSQL."""

from __future__ import annotations

import sys
from typing import Final

import click

from cloud.commands.options import EXIT_FAILED, Options, is_postgres
from schema.errors import MachineError

_EACH: Final = 50_000  # rows between two lines of progress


@click.command("move")
@click.option(
    "--to",
    required=True,
    envvar="MACHINE_CLOUD_DATABASE",
    metavar="URL",
    help="postgresql://USER:PASSWORD@HOST/NAME, an empty database.  [env var: MACHINE_CLOUD_DATABASE]",
)
@click.pass_obj
def move_command(options: Options, to: str) -> None:
    """Copy the database in --data to PostgreSQL, while the cloud is not running.

    Either everything is copied or nothing; the file is not changed. Captured files and packages stay where they are.
    """
    if not is_postgres(to):
        raise click.UsageError("--to is postgresql://...")
    if options.postgres not in ("", to):
        raise click.UsageError("what is moved is the file in --data: leave out --database")
    from cloud.store.postgres import without_library

    told: dict[str, int] = {}

    def tell(table: str, rows: int) -> None:
        if rows - told.get(table, 0) >= _EACH:
            told[table] = rows
            click.echo(f"{table}: {rows} rows", err=True)

    try:
        try:
            from cloud.store.moving import move
        except ImportError as error:
            raise without_library(error) from error
        moved = move(options.database, to, tell)
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
    click.echo(
        f"{sum(moved.values())} rows of {len(moved)} tables are copied. Start machine-cloud with that --database and "
        f"--files {options.files}; {options.database} is as it was: keep it, and start no cloud with it."
    )
