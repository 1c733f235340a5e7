"""The command `machine cloud releases import`: has a cloud publish its own programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from command.cloud.group import with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.output import json_option, print_json
from rpc.api import RELEASES
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from rpc.api import ApiClient


@click.command("import")
@click.option("--no-wait", is_flag=True, help="Return at once; the page Releases shows the progress.")
@ORGANIZATION
@json_option
@with_client
async def import_command(client: ApiClient, no_wait: bool, organization: str, as_json: bool) -> None:
    """Publish machine-agent and machine-server of the cloud's own version, for x86_64 and aarch64.

    The cloud takes release files from its folder --releases, or builds them if it runs from its sources, and signs them
    with its own keys. It can be repeated: files that it has are not stored again. A version goes into the channel
    stable where nothing is in it yet, otherwise into dev.
    """
    owner = (await organization_of(client, organization))["id"]
    state = await client.call(RELEASES, "", "start_release_import", organization_id=owner)
    shown = ""
    while not no_wait and state["state"] in ("waiting", "working"):
        if not as_json and state["step"] != shown:
            shown = state["step"]
            click.echo(shown, err=True)
        where = {"organization_id": owner, "number": state["number"]}
        state = await client.call(RELEASES, "", "wait_for_release_import", **where)
    if as_json:
        print_json(state)
    elif no_wait:
        click.echo("the import was started")
    else:
        click.echo(state["step"])
        for note in state["notes"]:
            click.echo(f"{note['platform'] or 'all'}: {note['reason']}\n  remedy: {note['remedy']}", err=True)
    if state["state"] == "failed":
        raise MachineError(
            "no release was imported", kind=ErrorKind.PRECONDITION, remedy="see the reasons above; then try again"
        )
