"""`machine operations` and `machine cancel`: the calls in progress."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from command.connection import ROBOT, Connection
from command.output import print_json
from schema import ErrorKind, MachineError
from support.text import terminal

if TYPE_CHECKING:
    from rpc.api import ApiClient


async def operations(client: ApiClient, connection: Connection) -> None:
    """Print all calls in progress except this one, oldest first."""
    running = sorted(await client.call(ROBOT, "", "get_operations"), key=lambda call: call["started"])
    if connection.json:
        print_json(running)
        return
    if not running:
        click.echo("no call is in progress")
        return
    now = datetime.now(UTC)
    rows = [
        (call["id"], call["method"].lstrip("/"), _arguments(call), terminal.since(call["started"], now))
        for call in running
    ]
    for line in terminal.table(("ID", "METHOD", "ARGUMENTS", "SINCE"), rows):
        click.echo(line)


async def cancel(client: ApiClient, words: Sequence[str]) -> None:
    """Cancel calls by id or unambiguous prefix of an id. Raises MachineError (NOT_FOUND)."""
    running_ids = [call["id"] for call in await client.call(ROBOT, "", "get_operations")]
    for word in words:
        matches = [call_id for call_id in running_ids if call_id.startswith(word)]
        if len(matches) != 1:
            raise MachineError(
                f"{word!r} is the beginning of {len(matches)} ids" if matches else f"no call {word!r} is in progress",
                kind=ErrorKind.NOT_FOUND,
                remedy="`machine operations` lists them",
            )
        await client.call(ROBOT, "", "cancel_operation", id=matches[0])


def _arguments(call: dict[str, object]) -> str:
    return terminal.one_line(call["arguments"]) if call.get("arguments") else ""
