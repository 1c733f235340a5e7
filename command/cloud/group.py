"""The group `machine cloud`, and its commands for logging in, machines and logs."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

import click

from command.cloud import login as cloud_login
from command.cloud.login import Login
from command.connection import Command, run, run_on_trio
from command.groups import Commands
from command.output import json_option, print_json
from schema import composed, whole_numbers

if TYPE_CHECKING:
    from command.cloud.show import Part
    from rpc.api import ApiClient

P = ParamSpec("P")

APP: Final = "viam.app.v1.AppService"
DATASETS: Final = "viam.app.dataset.v1.DatasetService"
NAMED: Final = 20  # datasets in an error
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_CA: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.group("cloud", cls=Commands)
def cloud() -> None:
    """Manage machines, configurations, logs and keys of a machine-cloud.

    Log in once: `machine cloud login https://cloud.example --key-id ID`. If they are set, MACHINE_CLOUD,
    MACHINE_CLOUD_KEY_ID and MACHINE_CLOUD_KEY are used instead, with MACHINE_CLOUD_CA for certificates to trust.
    """


def run_with_client(work: Command, login: Login | None = None, *, as_json: bool = False, on_trio: bool = False) -> None:
    """Run `work` with a client of the cloud that the user has logged in to, or of `login`.

    With `on_trio`, it may do more than wait for its calls; see `command.connection.run`.
    """
    connection = (login or cloud_login.load(os.environ)).connection(json=as_json)
    (run_on_trio if on_trio else run)(connection, work)


def with_client(work: Callable[Concatenate[ApiClient, P], Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Return a function for a command that calls `work` with a client of the cloud that the user has logged in to.

    With the option `as_json`, failures are printed as JSON too. `work` only waits for its calls.
    """
    return _with_client(work, on_trio=False)


def with_client_on_trio(work: Callable[Concatenate[ApiClient, P], Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Return a function for a command that calls `work` with a client of the cloud that the user has logged in to.

    `work` also does something else while it waits, or sends a stream of requests.
    """
    return _with_client(work, on_trio=True)


def _with_client(
    work: Callable[Concatenate[ApiClient, P], Coroutine[Any, Any, None]], *, on_trio: bool
) -> Callable[P, None]:
    @functools.wraps(work)
    def command(*args: P.args, **options: P.kwargs) -> None:
        as_json = bool(options.get("as_json"))
        run_with_client(lambda client: work(client, *args, **options), as_json=as_json, on_trio=on_trio)

    return command


async def find(client: ApiClient, name_or_id: str) -> Part:
    """Return the part with this name or id. Raises click.ClickException if there is none or several."""
    from command.cloud.show import chosen

    try:
        return chosen(await fleet_of(client), name_or_id)
    except ValueError as error:
        raise click.ClickException(str(error)) from None


async def fleet_of(client: ApiClient) -> list[Part]:
    """Return all parts to which the key has access."""
    from command.cloud.show import parts_of

    parts: list[Part] = []
    for organization in await client.call(APP, "", "list_organizations"):
        parts += parts_of(await client.call(APP, "", "list_machine_summaries", organization_id=organization["id"]))
    return parts


async def find_dataset(client: ApiClient, name_or_id: str, organizations: Sequence[str] = ()) -> str:
    """Return the id of the dataset with this name or id, by default in any organization to which the key has access.

    Raises click.ClickException if there is none, click.UsageError if there are several.
    """
    owners = organizations or [each["id"] for each in await client.call(APP, "", "list_organizations")]
    listed: list[dict[str, Any]] = []
    for owner in owners:
        listed += await client.call(DATASETS, "", "list_datasets_by_organization_id", organization_id=owner)
    matches: list[str] = [each["id"] for each in listed if is_called(each, name_or_id)]
    if len(matches) > 1:
        raise click.UsageError(f"several datasets are called {name_or_id!r}: give one of the ids {', '.join(matches)}")
    if not matches:
        names = ", ".join(sorted(repr(each["name"]) for each in listed)[:NAMED])
        remedy = f"use one of {names}" if names else "create one with `machine cloud datasets create`"
        raise click.ClickException(f"there is no dataset {name_or_id!r}: {remedy}")
    return matches[0]


def open_pages(name: str, *, only_print: bool, as_json: bool = False) -> None:
    """Open the page of the machine `name`, or the list of machines for "", logged in; or print the link."""
    from command.open import link_to, show

    login = cloud_login.load(os.environ)
    links: list[str] = []

    async def work(client: ApiClient) -> None:
        path = f"/machines/{(await find(client, name)).id}" if name else "/"
        links.append(await link_to(login.connection(), path))

    run_with_client(work, login, as_json=as_json, on_trio=True)
    show(links[0], only_print=only_print)


async def current(client: ApiClient, part: Part) -> dict[str, Any]:
    """Return the reply of GetRobotPart."""
    reply: dict[str, Any] = await client.call(APP, "", "get_robot_part", id=part.id)
    return reply


# ---- logging in


@cloud.command()
@click.argument("address")
@click.option("--key-id", required=True, metavar="ID", help="Id of the API key.")
@click.option(
    "--key", envvar=cloud_login.KEY, prompt=True, hide_input=True, help="The key; without it, the command asks for it."
)
@click.option("--ca", type=_CA, help="Certificates (PEM) to trust too, as printed by `machine-cloud ca`.")
def login(address: str, key_id: str, key: str, ca: Path | None) -> None:
    """Log in to the cloud at ADDRESS, such as https://cloud.example or http://localhost:8090."""
    if ca is not None and not address.startswith("https://"):
        raise click.UsageError(f"--ca applies only to a cloud with TLS: write https://{address.rpartition('://')[2]}")
    new_login = Login(address, key_id, key, str(ca.absolute()) if ca is not None else "")

    async def work(client: ApiClient) -> None:
        names = [organization["name"] for organization in await client.call(APP, "", "list_organizations")]
        path = cloud_login.save(new_login, os.environ)
        click.echo(
            f"logged in to {', '.join(names) or 'a cloud in which the key has no organization'}; saved in {path}"
        )

    run_with_client(work, new_login)


@cloud.command()
def logout() -> None:
    """Delete the saved key from this computer. It stays valid; `machine cloud keys delete` revokes it."""
    click.echo("logged out" if cloud_login.forget(os.environ) else "not logged in")


# ---- machines


@cloud.command(
    epilog="""\b
Examples:
  machine cloud machines --state degraded --location Greenhouse
  machine cloud machines --server-version 1.3.0
  machine cloud machines --update rolled_back"""
)
@click.option(
    "--state",
    type=click.Choice(("online", "degraded", "offline", "awaiting setup")),
    help="Only in this state. A machine is degraded if it is online with problems.",
)
@click.option("--location", default="", metavar="NAME", help="Only in the location with this name or id.")
@click.option("--agent-version", default="", metavar="VERSION", help="Only with this version of machine-agent.")
@click.option("--server-version", default="", metavar="VERSION", help="Only with this version of machine-server.")
@click.option(
    "--update", type=click.Choice(("updating", "waiting", "rolled_back", "problems")),
    help="Only with an update in progress, or one that waits for maintenance, or whose last update failed, or whose "
    "agent reports problems.",
)  # fmt: skip
@json_option
@with_client
async def machines(
    client: ApiClient,
    state: str | None,
    location: str,
    agent_version: str,
    server_version: str,
    update: str | None,
    as_json: bool,
) -> None:
    """List machines: state, number of problems, time of the last contact, address.

    Problems are mistakes in the configuration, and resources that do not work. With a filter for agents, versions or
    updates, what their agents report is shown, too.
    """
    from dataclasses import asdict
    from datetime import UTC, datetime

    from command.cloud.show import fleet, in_state, with_agents, with_health
    from rpc.api import AGENTS, HEALTH

    parts = with_health(await fleet_of(client), await client.call(HEALTH, "", "list_health"))
    parts = in_state(parts, state or "", location)
    filtered = bool(state or location or agent_version or server_version or update)
    if agent_version or server_version or update:
        agents = await client.call(AGENTS, "", "list_agents")
        parts = with_agents(parts, agents, agent_version, server_version, update or "")
    if filtered and not parts and not as_json:
        click.echo("no machine matches")
    elif as_json:
        print_json([asdict(part) for part in parts])
    elif not parts:
        click.echo("no machines: create one with `machine cloud new NAME`")
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        click.echo("\n".join(fleet(parts, datetime.now(UTC), colour=colour)))


@cloud.command()
@click.argument("name")
@click.option("--location", default="", help="Id or name of the location; needed if there are several.")
@click.option(
    "--output", type=_FILE, help="Write the machine's credentials to this new file instead of standard output."
)
def new(name: str, location: str, output: Path | None) -> None:
    """Create a machine, and the credentials with which its machine-server joins: `machine-server -config FILE`."""

    async def work(client: ApiClient) -> None:
        place = await _location(client, location)
        machine_id = await client.call(APP, "", "new_robot", name=name, location=place)
        part = (await client.call(APP, "", "get_robot_parts", robot_id=machine_id))[0]
        address = signed_in.address
        url = address if "://" in address else f"http://{address}"
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": url}
        if trusted:
            credentials["ca_file"] = authorities.name if authorities is not None else signed_in.ca
        text = json.dumps({"cloud": credentials}, indent=2)
        if output is None:
            click.echo(text)
            return
        if authorities is not None:
            _write_new(authorities, trusted)
        _write_new(output, text + "\n")
        click.echo(f"{name} was created; start it with: machine-server -config {output}")

    signed_in = cloud_login.load(os.environ)
    try:
        trusted = Path(signed_in.ca).read_text() if signed_in.ca else ""
    except OSError as error:
        raise click.UsageError(f"{signed_in.ca} cannot be read ({error.strerror}): log in again") from None
    authorities = output.with_suffix(".ca.pem") if output is not None and trusted else None
    for path in (output, authorities):
        if path is not None and path.exists():
            raise click.UsageError(f"{path} exists: give a new file")
        if path is not None and not path.parent.is_dir():
            raise click.UsageError(f"the folder {path.parent} does not exist: create it, or give another file")
    run_with_client(work)


async def _location(client: ApiClient, name_or_id: str) -> str:
    locations = [
        place
        for organization in await client.call(APP, "", "list_organizations")
        for place in await client.call(APP, "", "list_locations", organization_id=organization["id"])
    ]
    matches = [location for location in locations if not name_or_id or name_or_id in (location["id"], location["name"])]
    if len(matches) != 1:
        choices = ", ".join(f"{location['name']} ({location['id']})" for location in locations)
        raise click.ClickException(f"give one location with --location: {choices or 'there is none'}")
    return str(matches[0]["id"])


def _write_new(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


@cloud.command("open")
@click.argument("machine", required=False, default="")
@click.option("--print", "only_print", is_flag=True, help="Print a link that logs in once, instead of opening it.")
def open_(machine: str, only_print: bool) -> None:
    """Open the cloud's pages in the browser, logged in: that of MACHINE, or the list of machines."""
    open_pages(machine, only_print=only_print)


@cloud.command()
@click.argument("machine")
@with_client
async def restart(client: ApiClient, machine: str) -> None:
    """Stop the machine-server of MACHINE in order, so that its supervisor starts it again."""
    part = await find(client, machine)
    await client.call(APP, "", "mark_part_for_restart", part_id=part.id)
    click.echo(f"{part.machine} was asked to restart")


@cloud.command()
@click.argument("machine")
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Number of messages.")
@click.option("-f", "--follow", is_flag=True, help="Print new messages until Ctrl-C.")
@click.option("--errors", is_flag=True, help="Only errors.")
@click.option("--filter", "text", default="", help="Only messages with this text.")
@json_option
def logs(machine: str, count: int, follow: bool, errors: bool, text: str, as_json: bool) -> None:
    """Print log messages of MACHINE from the last 30 days, including those from while it was offline."""
    print_logs(machine, count, follow=follow, errors=errors, text=text, as_json=as_json)


def print_logs(machine: str, count: int, *, follow: bool, errors: bool, text: str, as_json: bool) -> None:
    """Print the newest `count` messages of a machine that the cloud has stored; with `follow`, also new ones."""
    format_entry = _object if as_json else _line

    async def work(client: ApiClient) -> None:
        part = await find(client, machine)
        query = {"id": part.id, "errors_only": errors, "filter": text or None}
        for entry in reversed(await _newest(client, query, count)):
            click.echo(format_entry(entry))
        if follow:
            async for batch in client.stream(APP, "", "tail_robot_part_logs", **query):
                for entry in batch:
                    click.echo(format_entry(entry))

    run_with_client(work)


async def _newest(client: ApiClient, query: Mapping[str, Any], count: int) -> list[Mapping[str, Any]]:
    entries: list[Mapping[str, Any]] = []
    token: str | None = None
    while token != "" and len(entries) < count:
        limit = min(count - len(entries), 1000)
        page = await client.call(APP, "", "get_robot_part_logs", **query, limit=limit, page_token=token)
        entries += page["logs"]
        token = page["next_page_token"]
    return entries


def _entry_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a log message for display, with integers as they were logged."""
    fields = {str(field.get("Key", "")): whole_numbers(field.get("Value")) for field in entry["fields"]}
    moment = entry["time"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "time": moment,
        "level": entry["level"],
        "logger": entry["logger_name"],
        "message": entry["message"],
        "fields": fields,
        **({"stack": entry["stack"]} if entry["stack"] else {}),
    }


def _object(entry: Mapping[str, Any]) -> str:
    return json.dumps(_entry_fields(entry), ensure_ascii=False)


def _line(entry: Mapping[str, Any]) -> str:
    from support.text.terminal import clean, one_line

    shown = _entry_fields(entry)
    words = [shown["time"], shown["level"].upper(), shown["logger"], shown["message"]]
    return clean("  ".join(words)) + (f"  {one_line(shown['fields'])}" if shown["fields"] else "")


cloud.add_later(
    {
        "config": "command.cloud.configurations.config:config",
        "ca": "command.cloud.ca:ca",
        "install-line": "command.cloud.keys:install_line",
        "keys": "command.cloud.keys:keys",
        "members": "command.cloud.members:members",
        "locations": "command.cloud.locations:locations",
        "data": "command.cloud.data:data",
        "datasets": "command.cloud.datasets:datasets",
        "train": "command.cloud.training.trainers:train",
        "modules": "command.cloud.registry.modules:modules",
        "packages": "command.cloud.registry.packages:packages",
        "fleet": "command.cloud.fleet.group:fleet",
        "fragments": "command.cloud.configurations.fragments:fragments",
        "triggers": "command.cloud.triggers:triggers",
        "alerts": "command.cloud.alerting.alerts:alerts",
        "releases": "command.cloud.releases.group:releases",
        "rollouts": "command.cloud.rollouts.rollouts:rollouts",
        "agent": "command.cloud.agent:agent",
        "network": "command.machine.through.network:network",
    }
)


def is_called(item: Mapping[str, Any], name_or_id: str) -> bool:
    """Return whether an object has this id, or this name with letters composed in any way (NFC, NFD)."""
    return name_or_id == item["id"] or composed(name_or_id) == composed(item["name"])
