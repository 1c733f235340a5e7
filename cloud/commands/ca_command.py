"""`machine-cloud ca`: print the certificates that clients must trust, and replace the authorities."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import click

from cloud.commands.options import EXIT_FAILED, Options
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError

T = TypeVar("T")


@click.group("ca", invoke_without_command=True)
@click.pass_context
def ca_command(context: click.Context) -> None:
    """Print the certificates (PEM) that clients must trust: those of the cloud itself and of all organizations'
    machines.

    The cloud may be running. Use `machine-cloud ca > ca.pem`, then SSL_CERT_FILE=ca.pem, or `ca_file` in the
    credentials of a machine.
    """
    if context.invoked_subcommand is not None:
        return
    from cloud.domain.certificates.authorities import current, scopes
    from cloud.domain.certificates.bundle import bundle

    def work(sql: Sql, now: datetime) -> str:
        for scope in scopes(sql):
            current(sql, scope, now)  # an authority is created when it is first requested
        return bundle(sql, scopes(sql), now)

    click.echo(_run_transaction(context.obj, work), nl=False)


@ca_command.command("rotate")
@click.option(
    "--now", "at_once", is_flag=True, help="Invalidate the old ones at once, because a private key has leaked."
)
@click.confirmation_option("--yes", prompt="Replace all authorities of this cloud?", help="Do not ask.")
@click.pass_obj
def rotate_command(options: Options, at_once: bool) -> None:
    """Create new authorities, which sign certificates from now on.

    Clients that trust the old authorities trust certificates of the new ones for 90 days; give all clients the new file
    within that time. A running cloud and its connected machines switch to the new authorities immediately.
    """
    from cloud.domain.certificates.authorities import OVERLAP, rotate, scopes

    overlap = timedelta() if at_once else OVERLAP

    def work(sql: Sql, now: datetime) -> int:
        return len([rotate(sql, scope, now, overlap) for scope in scopes(sql)])

    count = _run_transaction(options, work)
    effect = "the old ones are invalid" if at_once else f"the old ones are trusted for {OVERLAP.days} more days"
    click.echo(f"created {count} authorities; {effect}. Give clients the new file: machine-cloud ca > ca.pem")


def _run_transaction(options: Options, work: Callable[[Sql, datetime], T]) -> T:
    """Run a transaction on the database of `options` and return its result; exit the program on failure."""
    import trio

    from cloud.store.commands import opened_for_command
    from cloud.values.times import now

    async def main() -> T:
        if not options.postgres and not options.database.exists():
            raise MachineError(
                f"there is no cloud in {options.data}",
                kind=ErrorKind.NOT_FOUND,
                remedy="set its folder: machine-cloud --data FOLDER ca",
            )
        async with opened_for_command(options.database, options.postgres) as store:
            return await store.write(lambda sql: work(sql, now()))

    try:
        return trio.run(main)
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
