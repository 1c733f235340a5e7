"""The group `machine cloud fleet`: lists of machines, tags, and saved views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import click

from command.cloud.fleet.selection import filter_of, filter_options, machine_id
from command.cloud.group import find, with_client
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from rpc.api import ApiClient

SORTS: Final = ("name", "state", "location", "version", "problems")
AT_ONCE: Final = 500  # machines in one call
_FIELDS: Final = {
    "q": "text",
    "location": "location_id",
    "state": "state",
    "agent": "agent_version",
    "server": "server_version",
    "update": "update",
    "fragment": "fragment_id",
}
"""Fields of a filter by the parameters of the page's address."""


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine cloud fleet ls --tag press --state offline
  machine cloud fleet set components.arm.attributes.speed 3 --tag press --preview
  machine cloud fleet pin machine-server 1.3.0 --location "Hall 1"
  machine cloud fleet undo JOB""",
)
def fleet() -> None:
    """List many machines, tag them, and change them at once: with a preview, outcomes for each machine, and undo.

    Commands that change machines need the role of an owner there. MACHINE is the name or id of a machine.
    """


@fleet.command("ls")
@filter_options
@click.option("--view", default="", metavar="NAME", help="Use the filter and order of a saved view.")
@click.option("--sort", type=click.Choice(SORTS), help="Order.  [default: name]")
@click.option("-n", "count", type=click.IntRange(1, 50_000), default=1000, show_default=True, help="Most machines.")
@json_option
@with_client
async def list_command(
    client: ApiClient, /, view: str, sort: str | None, count: int, as_json: bool, **options: Any
) -> None:
    """List machines with versions, problems and tags, and count them by state."""
    from datetime import UTC, datetime

    from rpc.api import FLEET
    from support.text.terminal import since, table

    conditions = await filter_of(client, options)
    if view:
        saved, order = await _view(client, view)
        conditions, sort = saved | conditions, sort or order
    machines: list[dict[str, Any]] = []
    reply: dict[str, Any] = {"next_page_token": ""}
    while not machines or (reply["next_page_token"] and len(machines) < count):
        reply = await client.call(
            FLEET,
            "",
            "list_fleet_machines",
            filter=conditions,
            sort=sort or "",
            page_token=reply["next_page_token"],
            limit=min(AT_ONCE, count - len(machines)),
        )
        machines += reply["machines"]
        if not reply["machines"]:
            break
    if as_json:
        print_json([{**each, "last_seen": _text(each.get("last_seen"))} for each in machines])
        return
    now = datetime.now(UTC)
    rows = [
        [
            each["name"],
            each["state"],
            str(each["problems"] or ""),
            since(each.get("last_seen"), now),
            each["server_version"],
            each["agent_version"],
            each["location"],
            ", ".join(each["tags"]),
            each["id"],
        ]
        for each in machines
    ]
    if rows:
        head = ["MACHINE", "STATE", "PROBLEMS", "SEEN", "SERVER", "AGENT", "LOCATION", "TAGS", "ID"]
        click.echo("\n".join(table(head, rows)))
    states = ", ".join(f"{reply[state]} {state}" for state in ("online", "degraded", "offline", "awaiting"))
    click.echo(f"{reply['matching']} of {reply['total']} machines match ({states} altogether)", err=True)


def _text(moment: Any) -> str | None:
    return None if moment is None else str(moment.isoformat())


# ---- tags


@fleet.command()
@click.argument("machine")
@json_option
@with_client
async def tags(client: ApiClient, machine: str, as_json: bool) -> None:
    """Print the tags of MACHINE."""
    from rpc.api import FLEET

    listed = await client.call(FLEET, "", "list_machine_tags", machine_id=await _machine(client, machine))
    _print_tags(listed, as_json=as_json)


@fleet.command()
@click.argument("machine")
@click.argument("tags", nargs=-1, required=True)
@json_option
@with_client
async def tag(client: ApiClient, machine: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Add TAGS to MACHINE. Rollouts select machines by them, too."""
    from rpc.api import FLEET

    subject = await _machine(client, machine)
    _print_tags(await client.call(FLEET, "", "add_machine_tags", machine_id=subject, tags=list(tags)), as_json=as_json)


@fleet.command()
@click.argument("machine")
@click.argument("tags", nargs=-1, required=True)
@json_option
@with_client
async def untag(client: ApiClient, machine: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Remove TAGS from MACHINE and its parts."""
    from rpc.api import FLEET

    subject = await _machine(client, machine)
    _print_tags(
        await client.call(FLEET, "", "remove_machine_tags", machine_id=subject, tags=list(tags)), as_json=as_json
    )


async def _machine(client: ApiClient, name: str) -> str:
    part = await find(client, name)
    return await machine_id(client, part.id)


def _print_tags(listed: list[str], *, as_json: bool) -> None:
    from support.text.terminal import clean

    if as_json:
        print_json(listed)
    else:
        click.echo("".join(f"{clean(each)}\n" for each in listed), nl=False)


# ---- views


@fleet.command()
@json_option
@with_client
async def views(client: ApiClient, as_json: bool) -> None:
    """List saved views: your own, and those of the organization."""
    from rpc.api import FLEET
    from support.text.terminal import table

    listed = await client.call(FLEET, "", "list_fleet_views")
    if as_json:
        print_json(listed)
        return
    rows = [[each["name"], "organization" if each["shared"] else "own", each["query"], each["id"]] for each in listed]
    click.echo("\n".join(table(["NAME", "OF", "QUERY", "ID"], rows)))


@fleet.command("save-view")
@click.argument("name")
@click.argument("query")
@click.option("--shared", is_flag=True, help="For everyone in the organization.")
@with_client
async def save_view(client: ApiClient, name: str, query: str, shared: bool) -> None:
    """Save a view called NAME. QUERY is what follows `?` in the address of the list: `tag=press&sort=state`."""
    from rpc.api import FLEET

    await client.call(FLEET, "", "set_fleet_view", name=name, query=query, shared=shared)
    click.echo(f"{name} was saved")


@fleet.command("delete-view")
@click.argument("name")
@with_client
async def delete_view(client: ApiClient, name: str) -> None:
    """Delete the saved view with this NAME or id."""
    from rpc.api import FLEET

    view = await _find_view(client, name)
    await client.call(FLEET, "", "delete_fleet_view", id=view["id"])
    click.echo(f"{view['name']} was deleted")


async def _find_view(client: ApiClient, name: str) -> dict[str, Any]:
    from command.cloud.group import is_called
    from rpc.api import FLEET

    listed = await client.call(FLEET, "", "list_fleet_views")
    matches: list[dict[str, Any]] = [each for each in listed if is_called(each, name)]
    if len(matches) != 1:
        names = ", ".join(f"{each['name']} ({each['id']})" for each in matches or listed)
        raise click.ClickException(f"give one saved view by its id: {names or 'there is none'}")
    return matches[0]


async def _view(client: ApiClient, name: str) -> tuple[dict[str, Any], str]:
    """Return filter and order of a saved view."""
    query = dict(parse_qsl((await _find_view(client, name))["query"]))
    conditions: dict[str, Any] = {field: query[key] for key, field in _FIELDS.items() if key in query}
    if query.get("problems"):
        conditions["problems"] = True
    if "tag" in query:
        conditions["tags"] = [each for each in query["tag"].split(",") if each]
    return conditions, query.get("sort", "")


fleet.add_later(
    {
        name: f"command.cloud.fleet.jobs:{name.replace('-', '_')}_command"
        for name in (
            *("set", "unset", "apply", "remove", "pin", "add-tags", "remove-tags", "move", "restart"),
            *("jobs", "show", "stop", "undo"),
        )
    }
)
