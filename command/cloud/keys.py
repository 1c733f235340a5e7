"""`machine cloud keys`: manages API keys and their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from command.cloud.group import APP, with_client
from command.cloud.organization import missing_resource, organization_of
from command.groups import Commands

if TYPE_CHECKING:
    from rpc.api.client import ApiClient


@click.group(cls=Commands, invoke_without_command=True)
@click.pass_context
def keys(context: click.Context) -> None:
    """Manage API keys and their roles. Without a command, list them."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@keys.command("ls")
@with_client
async def list_command(client: ApiClient) -> None:
    """List all keys with their roles."""
    from runtime.engine.views.tables import table

    rows = [
        [
            key["api_key"]["name"],
            ", ".join(f"{grant['authorization_id']} {grant['resource_id']}" for grant in key["authorizations"]),
            key["api_key"]["id"],
        ]
        for organization in await client.call(APP, "", "list_organizations")
        for key in await client.call(APP, "", "list_keys", org_id=organization["id"])
    ]
    click.echo("\n".join(table(["NAME", "ROLES", "ID"], rows)))


@keys.command()
@click.argument("name")
@click.option("--role", type=click.Choice(["owner", "operator"]), default="operator", show_default=True)
@click.option(
    "--kind", type=click.Choice(["organization", "location", "robot"]), default="organization", show_default=True
)
@click.option("--at", "subject", default="", help="Id of the organization, location or machine.")
@with_client
async def create(client: ApiClient, name: str, role: str, kind: str, subject: str) -> None:
    """Create a key called NAME. It is printed only once."""
    if not subject and kind != "organization":
        raise missing_resource(kind)
    resource_id = subject or (await organization_of(client, "", "--at"))["id"]
    grant = {
        "authorization_type": "role",
        "authorization_id": f"{kind}_{role}",
        "resource_type": kind,
        "resource_id": resource_id,
    }
    _print(await client.call(APP, "", "create_key", authorizations=[grant], name=name))


@keys.command()
@click.argument("key_id")
@with_client
async def rotate(client: ApiClient, key_id: str) -> None:
    """Replace the key KEY_ID and print the new key, only once. The old key is invalid immediately."""
    _print(await client.call(APP, "", "rotate_key", id=key_id))


@keys.command()
@click.argument("key_id")
@with_client
async def delete(client: ApiClient, key_id: str) -> None:
    """Revoke the key KEY_ID immediately."""
    await client.call(APP, "", "delete_key", id=key_id)
    click.echo("deleted")


def _print(key: dict[str, str]) -> None:
    click.echo(f"key id  {key['id']}\nkey     {key['key']}\nThe key is shown only once.")
