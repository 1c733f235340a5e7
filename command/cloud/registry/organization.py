"""The option --organization of the commands of the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP

if TYPE_CHECKING:
    from rpc.api.client import ApiClient

PACKAGES: Final = "viam.app.packages.v1.PackageService"
ORGANIZATION: Final = click.option(
    "--organization", default="", metavar="ID", help="Needed if the key has access to several."
)


async def organization_of(client: ApiClient, organization: str) -> dict[str, Any]:
    """Return the organization with this id or name, or the only one."""
    organizations: list[dict[str, Any]] = await client.call(APP, "", "list_organizations")
    matches = [
        candidate
        for candidate in organizations
        if not organization or organization in (candidate["id"], candidate["name"])
    ]
    if len(matches) != 1:
        choices = ", ".join(f"{candidate['name']} ({candidate['id']})" for candidate in organizations)
        raise click.ClickException(f"give one organization with --organization: {choices or 'there is none'}")
    return matches[0]
