"""`machine-cloud move`: copy the SQLite database to PostgreSQL."""

from __future__ import annotations

import sys
from typing import Final

import click

from cloud.commands.options import EXIT_FAILED, Options, is_postgres
from schema import MachineError

_PROGRESS_EVERY: Final = 50_000  # rows between two lines of progress


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
        raise click.UsageError("--to must be a URL postgresql://...")
    if options.postgres not in ("", to):
        raise click.UsageError("this command moves the database file in --data: leave out --database")
    from cloud.store.postgres import without_library

    reported: dict[str, int] = {}

    def report_progress(table: str, rows: int) -> None:
        if rows - reported.get(table, 0) >= _PROGRESS_EVERY:
            reported[table] = rows
            click.echo(f"{table}: {rows} rows", err=True)

    try:
        try:
            from cloud.store.moving import move
        except ImportError as error:
            raise without_library(error) from error
        moved = move(options.database, to, report_progress)
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
    click.echo(
        f"copied {sum(moved.values())} rows of {len(moved)} tables. Start machine-cloud with this --database and "
        f"with --files {options.files}. {options.database} is unchanged: keep it, but do not start a cloud with it."
    )
