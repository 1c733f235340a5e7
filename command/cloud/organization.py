"""The organization in which a command acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP

if TYPE_CHECKING:
    from rpc.api import ApiClient

ORGANIZATION: Final = click.option(
    "--organization", default="", metavar="ID", help="Id or name; needed if the key has access to several."
)

_IDS: Final = {
    "location": "`machine cloud locations ls` shows the ids",
    "robot": "a machine's id is in the address of its page, after /machines/",
}
"""Where the ids of a kind of resource are shown."""


async def organization_of(client: ApiClient, organization: str, option: str = "--organization") -> dict[str, Any]:
    """Return the organization with this id or name; for "" the only one. click.UsageError names `option` otherwise."""
    organizations: list[dict[str, Any]] = await client.call(APP, "", "list_organizations")
    matches = [each for each in organizations if organization in ("", each["id"], each["name"])]
    if len(matches) != 1:
        if not organizations:
            raise click.UsageError("the key has access to no organization: ask an owner for a role")
        choices = ", ".join(f"{each['name']} ({each['id']})" for each in organizations)
        raise click.UsageError(f"give an organization with {option}: {choices}")
    return matches[0]


def missing_resource(kind: str) -> click.UsageError:
    """Return the error of a role at a location or machine ("robot") whose id was not given with --at."""
    return click.UsageError(f"--kind {kind} needs --at with an id: {_IDS[kind]}")
