"""`machine cloud network`: how calls reach a machine, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from command.cloud.group import current, find, with_client_on_trio
from command.groups import Commands
from command.output import json_option

if TYPE_CHECKING:
    from rpc.api import ApiClient

UNREACHED: Final = 3  # exit code


@click.group(cls=Commands)
def network() -> None:
    """Show how calls reach a machine from this computer."""


@network.command(epilog="\b\nExample:\n  machine cloud network explain rover")
@click.argument("machine")
@json_option
@click.pass_context
def explain(context: click.Context, machine: str, as_json: bool) -> None:
    """Try each path from this computer to MACHINE, and show which one clients take, its delay, and why others fail.

    Exit code 3: no path reaches the machine.
    """
    reached: list[bool] = []

    @with_client_on_trio
    async def work(client: ApiClient) -> None:
        from command.machine.through.paths import explained, explanation_lines

        part = await find(client, machine)
        explanation = await explained(part, (await current(client, part))["part"])
        reached.append(explanation.used is not None)
        click.echo(json.dumps(explanation.fields()) if as_json else "\n".join(explanation_lines(explanation)))

    work()
    if not any(reached):
        context.exit(UNREACHED)
