"""`machine cloud agent`: what machine-agent reports to the cloud."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from command.cloud.group import find, with_client
from command.groups import Commands

if TYPE_CHECKING:
    from rpc.api.client import ApiClient

NOT_REPORTED: Final = 3  # exit code
_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print a line of JSON, for programs.")


@click.group(cls=Commands)
def agent() -> None:
    """Show what the machine-agent of a machine reports: versions, updates, problems."""


@agent.command(epilog="\b\nExample:\n  machine cloud agent status rover")
@click.argument("machine")
@_JSON
@with_client
async def status(client: ApiClient, machine: str, as_json: bool) -> None:
    """Show the newest report of MACHINE, with its age, and how updates have ended.

    It is that of `machine agent status` on the machine. Exit code 3: its agent has not reported yet.
    """
    import json
    from datetime import UTC, datetime

    from command.agent.show import status_lines
    from command.cloud.show import outcome_lines, report_head
    from rpc.api.cloud_v1 import AGENTS
    from runtime.engine.views.tables import one_line

    part = await find(client, machine)
    state = await client.call(AGENTS, "", "get_agent_state", part_id=part.id)
    report = json.loads(state["report_json"] or "null")
    if as_json:
        click.echo(
            one_line({"part": part.id, "report": report, **{key: state[key] for key in ("received", "outcomes")}})
        )
    elif report is not None:
        lines = (report_head(part.machine, state["received"], datetime.now(UTC)), *status_lines(report))
        click.echo("\n".join((*lines, *outcome_lines(state["outcomes"]))))
    if report is None:
        click.echo(f"the machine-agent of {part.machine} has not reported yet", err=True)
        sys.exit(NOT_REPORTED)
