"""Who may do what: roles at organizations, locations and machines, each with all that lies below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from cloud.author import KEY, PART, Author
from cloud.credentials import require_in_force
from cloud.data.datasets import dataset
from cloud.data.files import file
from cloud.data.sources import Source
from cloud.fragments import fragment
from cloud.keys import Grant, grants_of, key
from cloud.machines import machine, part
from cloud.registry.items import find
from cloud.store.sql import Sql
from cloud.tenants import above, missing, organization
from schema.errors import ErrorKind, MachineError


class Role(IntEnum):
    """What one may do; each includes those below it."""

    NOBODY = 0
    MACHINE = 1  # the machine itself: what concerns it
    OPERATOR = 2  # looks, and controls machines
    OWNER = 3  # changes everything


class Of(Enum):
    """What an id in a request stands for."""

    ORGANIZATION = "organization"
    LOCATION = "location"
    ROBOT = "machine"
    PART = "part"
    KEY = "key"
    FRAGMENT = "fragment"
    DATASET = "dataset"
    FILE = "file"
    ITEM = "registry item"


_ROLES: Final = {"operator": Role.OPERATOR, "owner": Role.OWNER}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is: ids of the organization and of everything between it and the thing, the thing included."""

    organization: str
    within: frozenset[tuple[str, str]]  # (kind of a grant, id)
    part: str = ""


def place_of(sql: Sql, of: Of, subject: str) -> Place:
    """Where `subject` is; NOT_FOUND."""
    if of is Of.ORGANIZATION:
        organization(sql, subject)
        return _place(subject)
    if of is Of.KEY:
        return _place(key(sql, subject).organization_id)
    if of is Of.FRAGMENT:
        return _place(fragment(sql, subject).organization_id)
    if of is Of.ITEM:
        return _place(find(sql, subject).organization_id)
    if of is Of.DATASET:
        return _place(dataset(sql, subject).organization_id)
    if of is Of.FILE:
        return _captured(sql, file(sql, subject).source)
    if of is Of.PART:
        found = part(sql, subject)
        place = place_of(sql, Of.ROBOT, found.machine_id)
        return Place(place.organization, place.within, part=subject)
    if of is Of.ROBOT:
        one = machine(sql, subject)
        return _below(sql, one.location_id, ("robot", subject))
    return _below(sql, subject)


def _place(owner: str, *within: tuple[str, str]) -> Place:
    return Place(owner, frozenset({("organization", owner), *within}))


def _below(sql: Sql, where: str, *within: tuple[str, str]) -> Place:
    chain = above(sql, where)
    return _place(chain[0].organization_id, *(("location", one.id) for one in chain), *within)


def _captured(sql: Sql, source: Source) -> Place:
    """Where data came from: they outlive their machine and its location."""
    try:
        return _below(sql, source.location_id, ("robot", source.machine_id))
    except MachineError:
        return _place(source.organization_id, ("location", source.location_id), ("robot", source.machine_id))


def role_at(sql: Sql, author: Author, place: Place) -> Role:
    """What somebody may do at a place. UNAUTHENTICATED if the key that was shown is void."""
    require_in_force(sql, author)
    if author.type == PART:
        return Role.MACHINE if place.part and place.part == author.name else Role.NOBODY
    if author.type != KEY:
        return Role.NOBODY
    return best(grants_of(sql, author.name), place)


def best(grants: Iterable[Grant], place: Place) -> Role:
    """The highest of the roles that reach a place."""
    return max(
        (_ROLES[grant.role] for grant in grants if (grant.kind, grant.subject) in place.within), default=Role.NOBODY
    )


def require(sql: Sql, author: Author, role: Role, of: Of, subject: str) -> Place:
    """The place of `subject`, if `author` may act there in `role`.

    NOT_FOUND for somebody who has no role there, as if it did not exist; PERMISSION if the role is too low.
    """
    place = place_of(sql, of, subject)
    has = role_at(sql, author, place)
    if has is Role.NOBODY:
        raise missing(of.value, subject)
    if has < role:
        raise MachineError(
            f"this needs the role of an {role.name.lower()} of the {of.value}",
            kind=ErrorKind.PERMISSION,
            remedy="use a key with that role, or ask an owner",
        )
    return place


def visible(sql: Sql, author: Author) -> tuple[Grant, ...]:
    """The grants of somebody; none for a machine. UNAUTHENTICATED if the key that was shown is void."""
    require_in_force(sql, author)
    return grants_of(sql, author.name) if author.type == KEY else ()
