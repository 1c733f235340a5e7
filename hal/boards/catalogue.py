"""All defined boards, found by name or by the device tree. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache

from hal.boards.definition import BoardDefinition
from schema import ErrorKind, MachineError


@cache
def boards() -> tuple[BoardDefinition, ...]:
    """Return all boards, each family in the order of its release."""
    from hal.boards import beaglebone, jetson, raspberry_pi

    return (*raspberry_pi.BOARDS, *jetson.BOARDS, *beaglebone.BOARDS)


def named(name: str) -> BoardDefinition:
    """Return the board `name`, ignoring case and separators; MachineError (NOT_FOUND) suggests similar names."""
    plain_name = _plain(name)
    for board in boards():
        if plain_name in (_plain(board.name), _plain(board.title)):
            return board
    names = {_plain(board.name): board.name for board in boards()} | {"generic": "generic"}
    names |= {plain.removeprefix("raspberry").removeprefix("jetson"): title for plain, title in names.items()}
    similar = [title for plain, title in names.items() if plain_name and plain_name in plain][:3]
    similar = similar or [names[match] for match in difflib.get_close_matches(plain_name, names, 3, 0.5)]
    raise MachineError(
        f"no board is called {name!r}",
        kind=ErrorKind.NOT_FOUND,
        remedy=f"did you mean {' or '.join(similar)}?"
        if similar
        else f"the boards are {', '.join(dict.fromkeys(names.values()))}",
    )


def compatible(names: Iterable[str]) -> BoardDefinition | None:
    """Return the board for the `compatible` strings of a device tree; the first, most specific match applies."""
    by_compatible = {compatible: board for board in boards() for compatible in board.compatible}
    return next((by_compatible[name] for name in names if name in by_compatible), None)


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
