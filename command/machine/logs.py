"""`machine logs`: prints the newest lines of a machine's log, and follows it."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final

import click

from support.text.terminal import clean, one_line

if TYPE_CHECKING:
    from command.connection import Connection

COLOURS: Final = {"debug": "35", "info": "34", "warn": "33", "error": "31"}  # the same as in machine-server's output
RETRY: Final = (0.25, 5.0)  # shortest and longest pause in seconds between attempts to reconnect


async def logs(connection: Connection, query: Mapping[str, str], *, follow: bool, style: str) -> None:
    """Print matching lines in a style (`table`, `json` or `quiet`); with `follow`, also new lines until cancelled.

    With `follow`, a lost connection is retried without end; changes of the connection are reported on standard error.
    Raises MachineError or Unreachable if the first connection fails or the machine refuses.
    """
    import trio

    from command.connection import Unreachable
    from command.machine.logs_stream import LogReader
    from schema import ErrorKind, MachineError
    from support import doubled

    reader = LogReader(connection, {**query, **({"follow": "1"} if follow else {})})
    failures = 0

    def handle_message(message: Mapping[str, Any]) -> None:
        nonlocal failures
        if "machine" in message and failures:
            print_notice("the machine was restarted" if reader.restarted else "reconnected")
        failures = 0
        show(message, style, connection)

    while True:
        try:
            await reader.read(handle_message)
            if not follow:
                return
            reason = "it is stopping"
        except (MachineError, Unreachable) as error:
            lost = isinstance(error, Unreachable) or error.kind is ErrorKind.UNAVAILABLE
            if not follow or not reader.instance or not lost:
                raise
            reason = error.message
        if not failures:
            print_notice(f"the connection to {connection.address} was lost: {reason}; waiting for the machine")
        failures += 1
        first, longest = RETRY
        await trio.sleep(doubled(first, longest, failures) * random.uniform(0.5, 1.0))


def print_notice(text: str) -> None:
    """Print a notice on standard error."""
    click.echo(f"({clean(text)})", err=True)


def show(message: Mapping[str, Any], style: str, connection: Connection) -> None:
    """Print one message of the stream."""
    if count := message.get("missed"):
        print_notice(f"{count} lines are missing here: they were logged faster than this command received them")
    zone = datetime.now().astimezone().tzinfo
    for entry in message.get("entries", ()):
        sys.stdout.write(line(entry, style, colour=connection.colour, zone=zone) + "\n")
    sys.stdout.flush()


def line(entry: Mapping[str, Any], style: str, *, colour: bool = False, zone: tzinfo | None = None) -> str:
    """Format a log line: for people, as JSON, or only the message. Continuation lines of a message are indented."""
    if style == "json":
        return one_line(entry)
    words = "\n  ".join(clean(part) for part in str(entry["message"]).splitlines()) or "(no message)"
    if style == "quiet":
        return words
    level = str(entry["level"])
    shown = f"{level.upper():5}"
    if colour:
        shown = f"\x1b[{COLOURS.get(level, '0')}m{shown}\x1b[0m"
    moment = datetime.fromisoformat(str(entry["time"])).astimezone(zone)
    time = moment.replace(tzinfo=None).isoformat(" ", "milliseconds")
    fields = "".join(f" {clean(key)}={_value(value)}" for key, value in entry["fields"].items())
    return f"{time}  {shown}  {clean(str(entry['logger']))}  {words}{f'  {fields[1:]}' if fields else ''}"


def _value(value: object) -> str:
    return clean(value) if isinstance(value, str) and value and " " not in value else one_line(value)
