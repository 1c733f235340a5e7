"""`machine cloud locations`: manages access to locations, and their secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP, is_called, with_client
from command.cloud.times import local
from command.groups import Commands
from command.output import json_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpc.api import ApiClient

_QUIET: Final = click.option("-q", "--quiet", is_flag=True, help="Print only ids, one per line.")


@click.group(cls=Commands)
def locations() -> None:
    """Share locations with other organizations, and manage their secrets. LOCATION is a name or an id."""


@locations.command("ls")
@json_option
@_QUIET
@with_client
async def list_command(client: ApiClient, as_json: bool, quiet: bool) -> None:
    """List locations, including those that others share."""
    from support.text.terminal import one_line, table

    places = await _all(client)
    if as_json or quiet:
        click.echo("".join(f"{one_line(place) if as_json else place['id']}\n" for place in places), nl=False)
        return
    rows = [
        [
            place["name"],
            str(place["robot_count"]),
            place["primary_org_identity"]["name"],
            ", ".join(sharing["organization_id"] for sharing in place["organizations"] if not sharing["primary"]),
            place["id"],
        ]
        for place in places
    ]
    click.echo("\n".join(table(["NAME", "MACHINES", "OWNER", "SHARED WITH", "ID"], rows)))


@locations.command()
@click.argument("location")
@click.argument("organization")
@with_client
async def share(client: ApiClient, location: str, organization: str) -> None:
    """Share LOCATION with ORGANIZATION (an id): its keys then have their roles there, too."""
    place = await _find(client, location)
    await client.call(APP, "", "share_location", location_id=place["id"], organization_id=organization)
    click.echo(f"{place['name']} is shared with {organization}")


@locations.command()
@click.argument("location")
@click.argument("organization")
@with_client
async def unshare(client: ApiClient, location: str, organization: str) -> None:
    """Revoke the access of ORGANIZATION (an id) to LOCATION immediately."""
    place = await _find(client, location)
    await client.call(APP, "", "unshare_location", location_id=place["id"], organization_id=organization)
    click.echo(f"{place['name']} is no longer shared with {organization}")


@locations.group()
def secrets() -> None:
    """Manage secrets of locations, which any part in the location can use instead of its own secret."""


@secrets.command("ls")
@click.argument("location")
@json_option
@_QUIET
@with_client
async def list_secrets(client: ApiClient, location: str, as_json: bool, quiet: bool) -> None:
    """List the secrets of LOCATION, newest first. Only --json shows the secrets themselves."""
    from support.text.terminal import one_line, table

    place = await _find(client, location)
    listed = (await client.call(APP, "", "location_auth", location_id=place["id"]))["secrets"]
    if as_json or quiet:
        click.echo("".join(f"{one_line(secret) if as_json else secret['id']}\n" for secret in listed), nl=False)
        return
    rows = [[local(secret["created_on"]), secret["id"]] for secret in listed]
    click.echo("\n".join(table(["CREATED", "ID"], rows)))


@secrets.command("create")
@click.argument("location")
@with_client
async def create_secret(client: ApiClient, location: str) -> None:
    """Create a secret of LOCATION and print it. Older secrets stay valid."""
    place = await _find(client, location)
    click.echo((await client.call(APP, "", "create_location_secret", location_id=place["id"]))["secret"])


@secrets.command("delete")
@click.argument("location")
@click.argument("secret_id")
@with_client
async def delete_secret(client: ApiClient, location: str, secret_id: str) -> None:
    """Revoke SECRET_ID of LOCATION immediately."""
    place = await _find(client, location)
    await client.call(APP, "", "delete_location_secret", location_id=place["id"], secret_id=secret_id)
    click.echo("deleted")


async def _all(client: ApiClient) -> list[Mapping[str, Any]]:
    return [
        place
        for organization in await client.call(APP, "", "list_organizations")
        for place in await client.call(APP, "", "list_locations", organization_id=organization["id"])
    ]


async def _find(client: ApiClient, name_or_id: str) -> Mapping[str, Any]:
    matches = [place for place in await _all(client) if is_called(place, name_or_id)]
    if len(matches) != 1:
        problem = "several locations have" if matches else "no location has"
        remedy = "`machine cloud locations ls` lists the ids"
        raise click.ClickException(f"{problem} the name or id {name_or_id!r}: {remedy}")
    return matches[0]
