"""`machine cloud keys`: API keys and their roles; `machine cloud install-line`: a key for a new machine."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from command.cloud import login
from command.cloud.group import APP, find, with_client, with_client_on_trio
from command.cloud.organization import missing_resource, organization_of
from command.groups import Commands

if TYPE_CHECKING:
    from rpc.api import ApiClient


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
    from support.text.terminal import table

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


@click.command("install-line")
@click.argument("machine")
@click.option(
    "--cloud-init", is_flag=True, help="Print user-data for cloud-init, which executes the line at first boot."
)
@with_client_on_trio
async def install_line(client: ApiClient, machine: str, cloud_init: bool) -> None:
    """Print the line that installs machine-agent on the computer of MACHINE.

    The line works once, for one computer, within 24 hours. A new one replaces it.
    """
    from command.cloud.http import get
    from rpc.access import install_line as line_for
    from rpc.access import is_loopback_name, user_data
    from rpc.api import AGENTS

    part = await find(client, machine)
    address = login.load(os.environ).address
    url = (address if "://" in address else f"http://{address}").rstrip("/")
    authorities = b""
    if url.startswith("https://"):
        status, content = await get("/ca.pem", signed_in=False)
        authorities = content if status == 200 else b""
    sha256 = hashlib.sha256(authorities).hexdigest() if authorities else ""
    key = await client.call(AGENTS, "", "create_install_code", part_id=part.id)
    try:
        line = line_for(url, part.id, key["id"], key["key"], sha256)
    except ValueError as error:
        raise click.ClickException(
            f"{error}: log in with the address of the cloud, such as https://cloud.example"
        ) from None
    click.echo(user_data(line) if cloud_init else line, nl=not cloud_init)
    click.echo("the line works once, within 24 hours", err=True)
    if not url.startswith("https://"):
        click.echo("warning: this cloud has no TLS: anyone on the network path can read the key", err=True)
    if is_loopback_name(urlsplit(url).hostname or ""):
        click.echo(
            "warning: the line works only on this computer: for others, log in with an address that they can reach",
            err=True,
        )
