"""`machine cloud releases rollout`: the gradual release of a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from agent import PROGRAMS
from command.cloud.group import with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.times import with_texts
from command.groups import Commands
from command.output import json_option, print_json
from rpc.api import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpc.api import ApiClient

_PROGRAM: Final = click.argument("program", type=click.Choice(PROGRAMS))
_VERSION: Final = click.argument("version")


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine cloud releases rollout start machine-server 1.2.0 --percent 10 --tag lab --stop-after 2
  machine cloud releases rollout show machine-server 1.2.0
  machine cloud releases rollout finish machine-server 1.2.0""",
)
def rollout() -> None:
    """Release a version to a share of the machines, and stop if too many of them roll back.

    Start the rollout before you promote the version: it limits which machines get it from the channel `stable`.
    """


@rollout.command()
@_PROGRAM
@_VERSION
@click.option("--percent", type=click.FloatRange(0, 100, min_open=True), default=100.0, help="Share of the machines.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only machines with this tag, or any of several.")
@click.option("--location", "location_ids", multiple=True, metavar="ID", help="Only machines there or below.")
@click.option("--stop-after", type=click.IntRange(0), metavar="N", help="Stop when more than N machines rolled back.")
@ORGANIZATION
@json_option
@with_client
async def start(
    client: ApiClient, /, program: str, version: str, organization: str, as_json: bool, **options: Any
) -> None:
    """Start the rollout of VERSION of PROGRAM, or widen it to a higher percentage."""
    where = {"organization": organization, "program": program, "version": version}
    await _change(client, "start_rollout", **where, **options, as_json=as_json)


def _state_command(name: str, state: str, text: str) -> Callable[..., None]:
    """Return the command that sets a state."""

    @rollout.command(name, help=text)
    @_PROGRAM
    @_VERSION
    @ORGANIZATION
    @json_option
    @with_client
    async def command(client: ApiClient, program: str, version: str, organization: str, as_json: bool) -> None:
        where = {"organization": organization, "program": program, "version": version}
        await _change(client, "set_rollout_state", **where, state=state, as_json=as_json)

    return command


_state_command("pause", "paused", "Pause a rollout: only machines that run the version keep it.")
_state_command("resume", "active", "Resume a rollout. Machines that have rolled back are counted from zero.")
_state_command("stop", "stopped", "Stop a rollout. Like `pause`, but listed as stopped; `resume` continues it.")
_state_command("finish", "finished", "Release the version to all machines, once it is in the channel `stable`.")


@rollout.command("ls")
@ORGANIZATION
@json_option
@with_client
async def list_command(client: ApiClient, organization: str, as_json: bool) -> None:
    """List all rollouts, newest first."""
    from support.text.terminal import table

    owner = (await organization_of(client, organization))["id"]
    rollouts = (await client.call(RELEASES, "", "list_releases", organization_id=owner))["rollouts"]
    if as_json:
        print_json(with_texts(rollouts))
    elif not rollouts:
        click.echo("no rollouts: start one with `machine cloud releases rollout start`")
    else:
        rows = [[entry["program"], entry["version"], *_facts(entry)] for entry in rollouts]
        click.echo("\n".join(table(["PROGRAM", "VERSION", *_HEADINGS], rows)))


@rollout.command()
@_PROGRAM
@_VERSION
@ORGANIZATION
@json_option
@with_client
async def show(client: ApiClient, program: str, version: str, organization: str, as_json: bool) -> None:
    """Show a rollout and the state of each machine in it."""

    owner = (await organization_of(client, organization))["id"]
    status = await status_at(client, owner, program, version)
    if as_json:
        print_json(status)
    else:
        click.echo(status_of(status))


async def status_at(client: ApiClient, owner: str, program: str, version: str) -> dict[str, Any]:
    """Return a rollout and its machines as --json prints them."""
    status = await client.call(RELEASES, "", "get_rollout", organization_id=owner, program=program, version=version)
    machines = [{**machine, "since": machine.get("since")} for machine in status["machines"]]
    texts: dict[str, Any] = with_texts({**status, "machines": machines})
    return texts


def status_of(status: Mapping[str, Any]) -> str:
    """Return a rollout and its machines as text."""
    from support.text.terminal import table

    lines = table(_HEADINGS, [_facts(status["rollout"])])
    rows = [
        [
            machine["machine"],
            machine["part"],
            machine["location"],
            machine["state"],
            machine["version"],
            machine["reason"],
        ]
        for machine in status["machines"]
    ]
    if rows:
        lines = [*lines, "", *table(["MACHINE", "PART", "LOCATION", "STATE", "RUNS", "REASON"], rows)]
    return "\n".join([*lines, *([] if rows else ["no machine has reported about this version yet"])])


_HEADINGS: Final = ["STATE", "SHARE", "SELECTS", "ROLLED BACK", "STOPS AFTER", "REASON"]


def _facts(rollout: Mapping[str, Any]) -> list[str]:
    selected = [*(f"tag {tag}" for tag in rollout["tags"]), *(f"location {place}" for place in rollout["location_ids"])]
    limit = rollout["stop_after"]
    return [
        rollout["state"],
        f"{rollout['percent']:g} %",
        ", ".join(selected) or "all machines",
        str(rollout["rolled_back"]),
        "never" if limit < 0 else f"more than {limit}",
        rollout["reason"],
    ]


async def _change(client: ApiClient, method: str, *, organization: str, as_json: bool, **arguments: Any) -> None:
    from support.text.terminal import table

    owner = (await organization_of(client, organization))["id"]
    entry = await client.call(RELEASES, "", method, organization_id=owner, **arguments)
    if as_json:
        print_json(with_texts(entry))
    else:
        click.echo("\n".join(table(_HEADINGS, [_facts(entry)])))
