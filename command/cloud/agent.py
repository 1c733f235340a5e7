"""`machine cloud agent`: what machine-agent reports to the cloud, and requests to it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from command.cloud.group import find, with_client
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from rpc.api import ApiClient

NOT_REPORTED: Final = 3  # exit code


@click.group(cls=Commands)
def agent() -> None:
    """Show what the machine-agent of a machine reports, and have it check or update now."""


@agent.command(epilog="\b\nExample:\n  machine cloud agent status rover")
@click.argument("machine")
@json_option
@with_client
async def status(client: ApiClient, machine: str, as_json: bool) -> None:
    """Show the newest report of MACHINE, with its age, and how updates have ended.

    It is that of `machine agent status` on the machine. Exit code 3: its agent has not reported yet.
    """
    import json
    from datetime import UTC, datetime

    from command.agent.show import problem_lines, status_lines
    from command.cloud.show import outcome_lines, report_head, request_lines
    from rpc.api import AGENTS

    part = await find(client, machine)
    state = await client.call(AGENTS, "", "get_agent_state", part_id=part.id)
    report = json.loads(state["report_json"] or "null")
    if as_json:
        rest = {key: state[key] for key in ("received", "outcomes", "requests", "problems")}
        print_json({"part": part.id, "report": report, **rest})
    elif report is not None:
        lines = (
            report_head(part.machine, state["received"], datetime.now(UTC)),
            *status_lines(report),
            *problem_lines(state["problems"]),
        )
        click.echo("\n".join((*lines, *request_lines(state["requests"]), *outcome_lines(state["outcomes"]))))
    if report is None:
        click.echo(f"the machine-agent of {part.machine} has not reported yet", err=True)
        sys.exit(NOT_REPORTED)


@agent.command(epilog="\b\nExamples:\n  machine cloud agent update rover\n  machine cloud agent update rover --agent")
@click.argument("machine")
@click.option("--agent", "own", is_flag=True, help="Update machine-agent itself instead of machine-server.")
@with_client
async def update(client: ApiClient, machine: str, own: bool) -> None:
    """Install the update that waits on MACHINE now, whatever maintenance says.

    An agent that is connected receives the request at once, another one when it connects within 24 hours. A hold
    stays in force.
    """
    from rpc.api import AGENTS
    from uplink.releases import AGENT, SERVER

    part, program = await find(client, machine), AGENT if own else SERVER
    await client.call(AGENTS, "", "mark_agent_for_update", part_id=part.id, program=program)
    click.echo(f"{part.machine} was asked to update {program} now: `machine cloud agent status {part.machine}`")


@agent.command(epilog="\b\nExample:\n  machine cloud agent check rover")
@click.argument("machine")
@with_client
async def check(client: ApiClient, machine: str) -> None:
    """Have the agent of MACHINE ask for its settings and versions now, not at the next regular time."""
    from rpc.api import AGENTS

    part = await find(client, machine)
    await client.call(AGENTS, "", "mark_agent_for_check", part_id=part.id)
    click.echo(f"{part.machine} was asked to check for settings and versions")
