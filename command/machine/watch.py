"""`machine watch`: shows changes of states and readings.

The published API has no stream of states, so states and sensors are read periodically.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click
import trio

from command.connection import Connection
from command.machine import facts
from command.machine.show import HEAD, machine_state, row
from schema import ErrorKind, MachineError
from support.text import terminal
from support.text.words import readings as flatten

if TYPE_CHECKING:
    from rpc.api import ApiClient

READABLE: Final = ("sensor", "movement_sensor", "power_sensor")  # APIs with get_readings
HOME_AND_CLEAR: Final = "\x1b[H\x1b[J"
LEAVE: Final = "\x1b[?25h\x1b[?1049l"  # show the cursor, return to the main screen
ENTER: Final = "\x1b[?1049h\x1b[?25l"


async def watch(client: ApiClient, connection: Connection, names: Sequence[str], interval: float) -> None:
    """Watch until cancelled. On a terminal, redraw the screen; otherwise print a line for each change."""
    screen = connection.terminal and not connection.json
    before: facts.Machine | None = None
    previous_values: dict[str, Any] = {}
    if screen:
        click.echo(ENTER, nl=False)
    try:
        while True:
            start = trio.current_time()
            machine = chosen(await machine_state(client), names)
            now = datetime.now(UTC)
            values = await read(client, machine)
            if screen:
                click.echo(HOME_AND_CLEAR + "\n".join(draw(machine, values, now, connection)), nl=False)
            else:
                for line in news(before, machine, previous_values, values, now, as_json=connection.json):
                    click.echo(line)
            before, previous_values = machine, values
            await trio.sleep_until(start + interval)
    finally:
        if screen:
            click.echo(LEAVE, nl=False)


def chosen(machine: facts.Machine, names: Sequence[str]) -> facts.Machine:
    """Return the machine with only the named resources; with all if `names` is empty.

    Raises MachineError (NOT_FOUND) for an unknown simple or full name.
    """
    if not names:
        return machine
    valid_names = {resource.full for resource in machine.resources} | {resource.name for resource in machine.resources}
    for name in names:
        if name not in valid_names:
            raise MachineError(
                f"no resource {name!r} is configured", kind=ErrorKind.NOT_FOUND, remedy="`machine resources` lists them"
            )
    selected = tuple(resource for resource in machine.resources if resource.full in names or resource.name in names)
    return facts.Machine(machine.state, machine.revision, machine.updated, selected)


async def read(client: ApiClient, machine: facts.Machine) -> dict[str, Any]:
    """Read all ready sensors concurrently, and return readings or errors by full name."""
    readings: dict[str, Any] = {}

    async def read_sensor(resource: facts.Resource) -> None:
        try:
            readings[resource.full] = await client.call(resource.api, resource.name, "get_readings")
        except MachineError as error:
            readings[resource.full] = {"error": str(error)}

    async with trio.open_nursery() as nursery:
        for resource in machine.resources:
            if resource.subtype in READABLE and resource.state == "ready":
                nursery.start_soon(read_sensor, resource)
    return dict(sorted(readings.items()))


def draw(machine: facts.Machine, values: dict[str, Any], now: datetime, connection: Connection) -> list[str]:
    """Return the lines of the screen."""
    state = terminal.paint(machine.state) if connection.colour else machine.state
    lines = [f"{connection.address} is {state}; {facts.counts(machine.resources)}; stop with Ctrl-C", ""]
    lines += terminal.table(HEAD, [row(resource, now) for resource in machine.resources], colour=connection.colour)
    rows = [
        (name.partition("/")[2] if index == 0 else "", key, text)
        for name, reading in values.items()
        for index, (key, text, _) in enumerate(flatten(reading))
    ]
    if rows:
        lines += ["", *terminal.table(("SENSOR", "READING", "VALUE"), rows)]
    return lines


def news(
    before: facts.Machine | None,
    machine: facts.Machine,
    previous_values: dict[str, Any],
    values: dict[str, Any],
    now: datetime,
    *,
    as_json: bool,
) -> list[str]:
    """Return a line for each changed state and each sensor with changed readings."""
    when = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    lines = []
    for resource in facts.changes(before, machine):
        event = {"time": when, "name": resource.full, "state": resource.state, "reason": resource.reason}
        reason = f": {terminal.clean(resource.reason)}" if resource.reason else ""
        line = f"{when} {resource.full} {resource.state}{reason}"
        lines.append(terminal.one_line(event) if as_json else line)
    for name, reading in values.items():
        if previous_values.get(name) == reading:
            continue
        event = {"time": when, "name": name, "readings": reading}
        line = f"{when} {name} " + " ".join(f"{key}={terminal.clean(text)}" for key, text, _ in flatten(reading))
        lines.append(terminal.one_line(event) if as_json else line)
    return lines
