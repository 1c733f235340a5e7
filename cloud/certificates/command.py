"""`machine-cloud ca`: what clients must trust, and new authorities."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import click

from cloud.options import EXIT_FAILED, Options
from cloud.store.sql import Sql
from schema.errors import ErrorKind, MachineError

T = TypeVar("T")


@click.group("ca", invoke_without_command=True)
@click.pass_context
def ca_command(context: click.Context) -> None:
    """Print the certificates (PEM) that clients must trust: of the cloud itself, and of all organizations' machines.

    Also while the cloud runs. `machine-cloud ca > ca.pem`, then SSL_CERT_FILE=ca.pem, or `ca_file` in the credentials
    of a machine.
    """
    if context.invoked_subcommand is not None:
        return
    from cloud.certificates.authorities import current, scopes
    from cloud.certificates.bundle import bundle

    def work(sql: Sql, now: datetime) -> str:
        for scope in scopes(sql):
            current(sql, scope, now)  # made when it is asked for first
        return bundle(sql, scopes(sql), now)

    click.echo(_done(context.obj, work), nl=False)


@ca_command.command("rotate")
@click.option("--now", "at_once", is_flag=True, help="Void the old ones at once: a private key has leaked.")
@click.confirmation_option("--yes", prompt="Replace all authorities of this cloud?", help="Do not ask.")
@click.pass_obj
def rotate_command(options: Options, at_once: bool) -> None:
    """Make new authorities, which sign from now on.

    Whoever trusts the old ones trusts what the new ones sign for 90 days: until then give all clients the new file.
    A running cloud and the machines that are connected to it take the new ones at once.
    """
    from cloud.certificates.authorities import OVERLAP, rotate, scopes

    overlap = timedelta() if at_once else OVERLAP

    def work(sql: Sql, now: datetime) -> int:
        return len([rotate(sql, scope, now, overlap) for scope in scopes(sql)])

    count = _done(options, work)
    then = "the old ones are void" if at_once else f"the old ones are trusted for {OVERLAP.days} more days"
    click.echo(f"{count} new authorities; {then}. Give clients the new file: machine-cloud ca > ca.pem")


def _done(options: Options, work: Callable[[Sql, datetime], T]) -> T:
    """Carry out a transaction on the database that `options` names; ends the program if there is none."""
    import trio

    from cloud.store.beside import opened_beside
    from cloud.times import now

    async def main() -> T:
        if not options.postgres and not options.database.exists():
            raise MachineError(
                f"there is no cloud in {options.data}",
                kind=ErrorKind.NOT_FOUND,
                remedy="name its folder: machine-cloud --data FOLDER ca",
            )
        async with opened_beside(options.database, options.postgres) as store:
            return await store.write(lambda sql: work(sql, now()))

    try:
        return trio.run(main)
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
