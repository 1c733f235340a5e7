"""Which organization of a cloud a command of the registry is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP

if TYPE_CHECKING:
    from rpc.api.client import ApiClient

PACKAGES: Final = "viam.app.packages.v1.PackageService"
ORGANIZATION: Final = click.option(
    "--organization", default="", metavar="ID", help="Needed if the key sees more than one."
)


async def organization_of(client: ApiClient, wanted: str) -> dict[str, Any]:
    """The organization with this id, or the only one."""
    found: list[dict[str, Any]] = await client.call(APP, "", "list_organizations")
    meant = [one for one in found if not wanted or wanted in (one["id"], one["name"])]
    if len(meant) != 1:
        listed = ", ".join(f"{one['name']} ({one['id']})" for one in found)
        raise click.ClickException(f"name one organization with --organization: {listed or 'there is none'}")
    return meant[0]
