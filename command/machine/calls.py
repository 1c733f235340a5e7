"""`machine operations` and `machine cancel`: the calls in progress."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from command.connection import ROBOT, Connection
from runtime.engine.views import tables
from schema.errors import ErrorKind, MachineError

if TYPE_CHECKING:
    from rpc.api.client import ApiClient


async def operations(client: ApiClient, connection: Connection) -> None:
    """Print all calls in progress except this one, oldest first."""
    found = sorted(await client.call(ROBOT, "", "get_operations"), key=lambda one: one["started"])
    if connection.json:
        click.echo(tables.one_line(found))
        return
    if not found:
        click.echo("no call is in progress")
        return
    now = datetime.now(UTC)
    rows = [(one["id"], one["method"].lstrip("/"), _arguments(one), tables.since(one["started"], now)) for one in found]
    for line in tables.table(("ID", "METHOD", "ARGUMENTS", "SINCE"), rows):
        click.echo(line)


async def cancel(client: ApiClient, words: Sequence[str]) -> None:
    """Cancel calls by id or unambiguous prefix of an id. Raises MachineError (NOT_FOUND)."""
    known = [one["id"] for one in await client.call(ROBOT, "", "get_operations")]
    for word in words:
        meant = [opid for opid in known if opid.startswith(word)]
        if len(meant) != 1:
            raise MachineError(
                f"{word!r} begins the id of {len(meant)} calls" if meant else f"no call {word!r} is in progress",
                kind=ErrorKind.NOT_FOUND,
                remedy="`machine operations` lists them",
            )
        await client.call(ROBOT, "", "cancel_operation", id=meant[0])


def _arguments(one: dict[str, object]) -> str:
    return tables.one_line(one["arguments"]) if one.get("arguments") else ""
