"""Options that select machines, shared by the commands of `machine cloud fleet`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from command.cloud.group import APP, fleet_of, is_called

if TYPE_CHECKING:
    from rpc.api import ApiClient

F = TypeVar("F", bound=Callable[..., Any])

STATES: Final = ("online", "degraded", "offline", "awaiting")
UPDATES: Final = ("updating", "waiting", "rolled_back", "problems")
_FILTERS: Final = (
    click.option(
        "--text", default="", metavar="WORDS", help="Only with these words in the name, location, version or tags."
    ),
    click.option("--location", default="", metavar="NAME", help="Only in the location with this name or id."),
    click.option("--state", type=click.Choice(STATES), help="Only in this state."),
    click.option("--agent-version", default="", metavar="VERSION", help="Only with this version of machine-agent."),
    click.option("--server-version", default="", metavar="VERSION", help="Only with this version of machine-server."),
    click.option("--update", type=click.Choice(UPDATES), help="Only with such an update, or problems of the agent."),
    click.option("--problems", is_flag=True, help="Only with problems."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag; can be repeated."),
    click.option("--fragment", default="", metavar="ID", help="Only machines that use this fragment."),
)


def filter_options(command: F) -> F:
    """Add the options of a filter, whose values are the arguments of `filter_of`."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


async def filter_of(client: ApiClient, options: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the options of a filter from `options`; return the filter for calls, empty without conditions."""
    chosen = {
        "text": options["text"],
        "location_id": await location_id(client, options["location"]) if options["location"] else "",
        "state": options["state"] or "",
        "agent_version": options["agent_version"],
        "server_version": options["server_version"],
        "update": options["update"] or "",
        "problems": options["problems"],
        "tags": list(options["tags"]),
        "fragment_id": options["fragment"],
    }
    return {key: value for key, value in chosen.items() if value}


async def location_id(client: ApiClient, name_or_id: str) -> str:
    """Return the id of the location with this name or id. Raises click.ClickException if there is none or several."""
    places: list[Mapping[str, Any]] = []
    for organization in await client.call(APP, "", "list_organizations"):
        places += await client.call(APP, "", "list_locations", organization_id=organization["id"])
    matches = [place for place in places if is_called(place, name_or_id)]
    if len(matches) != 1:
        names = ", ".join(f"{place['name']} ({place['id']})" for place in matches or places)
        raise click.ClickException(f"give one location by its id: {names or 'there is none'}")
    return str(matches[0]["id"])


async def machine_ids(client: ApiClient, names: tuple[str, ...]) -> list[str]:
    """Return the ids of machines with these names or ids. Raises click.ClickException."""
    from command.cloud.show import chosen

    if not names:
        return []
    parts = await fleet_of(client)
    ids: list[str] = []
    for name in names:
        try:
            part = chosen(parts, name)
        except ValueError as error:
            raise click.ClickException(str(error)) from None
        ids.append(await machine_id(client, part.id))
    return ids


async def machine_id(client: ApiClient, part: str) -> str:
    """Return the id of the machine of a part."""
    return str((await client.call(APP, "", "get_robot_part", id=part))["part"]["robot"])
