"""Permission to call a machine, through the cloud or by WebRTC."""

from __future__ import annotations

from cloud.domain.machines.machines import part
from cloud.domain.permissions.access import ObjectKind, Place, Role, place_of, require
from cloud.domain.permissions.call_rules import calling_role
from cloud.store.sql import Sql
from cloud.values.author import MACHINES, Author
from schema import ErrorKind, MachineError


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
