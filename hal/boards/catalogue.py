"""All boards that are known by name. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache

from hal.boards.definition import BoardDefinition
from schema.errors import ErrorKind, MachineError


@cache
def boards() -> tuple[BoardDefinition, ...]:
    """Every board of the tables, each family in the order of its release."""
    from hal.boards import beaglebone, jetson, raspberry_pi

    return (*raspberry_pi.BOARDS, *jetson.BOARDS, *beaglebone.BOARDS)


def named(name: str) -> BoardDefinition:
    """The board called `name`, case and separators aside; MachineError (NOT_FOUND) with the nearest names."""
    wanted = _plain(name)
    for board in boards():
        if wanted in (_plain(board.name), _plain(board.title)):
            return board
    names = {_plain(board.name): board.name for board in boards()} | {"generic": "generic"}
    names |= {plain.removeprefix("raspberry").removeprefix("jetson"): known for plain, known in names.items()}
    near = [known for plain, known in names.items() if wanted and wanted in plain][:3]
    near = near or [names[match] for match in difflib.get_close_matches(wanted, names, 3, 0.5)]
    raise MachineError(
        f"no board is called {name!r}",
        kind=ErrorKind.NOT_FOUND,
        remedy=f"did you mean {' or '.join(near)}?"
        if near
        else f"the boards are {', '.join(dict.fromkeys(names.values()))}",
    )


def compatible(names: Iterable[str]) -> BoardDefinition | None:
    """The board that one of a device tree's `compatible` strings names; the first, most specific one decides."""
    known = {compatible: board for board in boards() for compatible in board.compatible}
    return next((known[name] for name in names if name in known), None)


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
