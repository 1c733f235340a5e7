"""Permission to call a machine, through the cloud or by WebRTC."""

from __future__ import annotations

from typing import Final

from cloud.domain.machines.machines import part
from cloud.domain.permissions.access import ObjectKind, Place, Role, place_of, require
from cloud.domain.permissions.rules import operator
from cloud.store.sql import Sql
from cloud.values.author import LOCATION, MACHINES, Author
from schema import ErrorKind, MachineError

CALL_A_MACHINE: Final = (
    operator(ObjectKind.PART, "part") | "also with a secret of its location, or of the main part of its machine"
)
"""Rule for every call to a machine through the cloud."""


def check_answering(author: Author) -> None:
    """Raise PERMISSION if a caller that acts as a machine must not answer clients in its name.

    Clients know the secret of the location, too: with it, one client could pretend to others to be the machine.
    """
    if author.type == LOCATION:
        raise MachineError(
            "a secret of the location does not let a program answer clients as the machine",
            kind=ErrorKind.PERMISSION,
            remedy="use the secret of the part, or an owner's key",
        )


def calling_role(author: Author) -> Role:
    """Return the role that a caller needs at a part to call it: that of CALL_A_MACHINE."""
    return Role.MACHINE if author.type == LOCATION else CALL_A_MACHINE.role


def require_caller(sql: Sql, author: Author, subject: str) -> Place:
    """Check that `author` may call a part, and return its place; see `access.require`.

    A secret of the part's location is accepted too, as the machine itself accepts it from clients; the secret of the
    part is not. The main part of a machine may call its sub-parts.
    """
    if author.type in MACHINES and author.name != subject and _is_main_part_of(sql, author, subject):
        require(sql, author, Role.MACHINE, ObjectKind.PART, author.name)  # its secret is in force
        return place_of(sql, ObjectKind.PART, subject)
    return require(sql, author, calling_role(author), ObjectKind.PART, subject)


def _is_main_part_of(sql: Sql, author: Author, subject: str) -> bool:
    try:
        caller, called = part(sql, author.name), part(sql, subject)
    except MachineError as error:
        if error.kind is ErrorKind.NOT_FOUND:
            return False
        raise
    return caller.main and caller.machine_id == called.machine_id
