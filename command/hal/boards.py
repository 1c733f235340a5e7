"""`machine hal boards`: lists supported boards and prints their pin-outs."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from command.output import print_json
from hal.boards import BoardDefinition, BoardPin, boards, compatible
from hal.inventory import device_tree, find_board
from schema import MachineError
from support.text import terminal


def show(name: str, *, as_json: bool) -> None:
    """Print a list of all boards, or the pin-out of the board `name`."""
    if not name:
        _list(as_json=as_json)
        return
    try:
        board = find_board(name)
    except MachineError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        print_json(msgspec.to_builtins(board))
        return
    for line in pinout(board):
        click.echo(line)


def _list(*, as_json: bool) -> None:
    this_board = compatible(device_tree().compatible)
    if as_json:
        rows = [{"name": board.name, "title": board.title, "compatible": board.compatible} for board in boards()]
        print_json({"boards": rows, "this": this_board.name if this_board is not None else "generic"})
        return
    lines = [(board.name, board.title, "this computer" if board is this_board else "") for board in boards()]
    lines.append(("generic", "any other computer: lines are <chip>:<offset>", "" if this_board else "this computer"))
    for line in terminal.table(("NAME", "BOARD", ""), lines):
        click.echo(line)


def pinout(board: BoardDefinition) -> Iterator[str]:
    """Yield the lines of a pin-out: pins (a 40-pin header in two columns), buses, unverified facts."""
    yield f"{board.title} ({board.name})"
    yield ""
    if [pin.names[0] for pin in board.pins] == [str(place) for place in range(1, 41)]:
        pairs = zip(board.pins[::2], board.pins[1::2], strict=True)
        rows = [(odd.note, _names(odd), odd.names[0], even.names[0], _names(even), even.note) for odd, even in pairs]
        yield from terminal.table(("USE", "NAMES", "PIN", "PIN", "NAMES", "USE"), rows)
    elif board.pins:
        listed = [(pin.names[0], _names(pin), str(pin.line or ""), pin.note) for pin in board.pins]
        yield from terminal.table(("PIN", "NAMES", "LINE", "USE"), listed)
    else:
        yield "no GPIO chip"
    buses = [*board.i2c.items(), *board.spi.items(), *board.serial.items()]
    if buses:
        yield ""
        yield from terminal.table(("BUS", "PATH"), buses)
    for note in board.unverified:
        yield f"unverified: {note}"


def _names(pin: BoardPin) -> str:
    return " ".join(pin.names[1:])
