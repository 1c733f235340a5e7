"""`machine-cloud organization`: add an organization, with its own owner key, to a cloud."""

from __future__ import annotations

import sys

import click
import trio

from cloud.commands.options import EXIT_FAILED, Options
from cloud.domain.organizations.first import FirstKey, create_owner
from cloud.store.commands import opened_for_command
from cloud.values.times import now
from schema import MachineError


@click.command("organization")
@click.argument("name")
@click.pass_obj
def organization_command(options: Options, name: str) -> None:
    """Create another organization called NAME and print its owner's key once. The cloud may be running.

    It shares nothing with other organizations except what they share with it: see `machine cloud locations share`.
    """
    if not options.postgres and not options.database.exists():
        click.echo(
            f"machine-cloud: there is no cloud in {options.data}: start machine-cloud first, or set --data", err=True
        )
        sys.exit(EXIT_FAILED)
    try:
        created = trio.run(_make, options, name)
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
    click.echo(
        f"Created a new organization. Keep this key, it is shown only once:\n"
        f"  organization  {created.organization}\n"
        f"  location      {created.location}\n"
        f"  key id        {created.id}\n"
        f"  key           {created.key}"
    )


async def _make(options: Options, name: str) -> FirstKey:
    async with opened_for_command(options.database, options.postgres) as store:
        return await store.write(lambda sql: create_owner(sql, name, now()))
