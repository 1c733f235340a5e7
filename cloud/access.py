"""Who may do what: roles at organizations, locations and machines, each with all that lies below.

The keys of an organization that a location is shared with have their roles there too, but for what is asked with
`home`: what decides over belonging stays with the organization that the location belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import Final

from cloud.author import KEY, MACHINES, Author
from cloud.credentials import require_in_force
from cloud.data.datasets import dataset
from cloud.data.files import file
from cloud.data.sources import Source
from cloud.fragments import fragment
from cloud.keys import Grant, grants_of, key, organization_of
from cloud.machines import machine, part
from cloud.registry.items import find
from cloud.sharing import guests
from cloud.store.sql import Sql
from cloud.tenants import above, missing, organization
from schema.errors import ErrorKind, MachineError


class Role(IntEnum):
    """What one may do; each includes those below it."""

    NOBODY = 0
    MACHINE = 1  # the machine itself; owners may act for it, operators may not
    OPERATOR = 2  # views and controls machines
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


SHARED: Final = frozenset({Of.LOCATION, Of.ROBOT, Of.PART, Of.FILE})
"""What the keys of an organization that a location is shared with may have a role at."""

OF: Final = {"organization": Of.ORGANIZATION, "location": Of.LOCATION, "robot": Of.ROBOT}
"""Where the roles of each kind are."""

_ROLES: Final = {"operator": Role.OPERATOR, "owner": Role.OWNER}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is: ids of the organization and of everything between it and the thing, the thing included."""

    organization: str
    within: frozenset[tuple[str, str]]  # (kind of a grant, id); also the organizations with access
    part: str = ""

    def reached_by(self, owner: str) -> bool:
        """Whether keys of an organization may have a role here: its own, and those that it is shared with."""
        return ("organization", owner) in self.within


@dataclass(frozen=True, slots=True)
class Holder:
    """The roles of a key, which count only where its organization has access. Nobody's are none."""

    organization: str = ""
    grants: tuple[Grant, ...] = ()

    def role(self, place: Place) -> Role:
        """The highest that reaches a place."""
        return best(self.grants, place) if place.reached_by(self.organization) else Role.NOBODY


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
        return captured(sql, file(sql, subject).source)
    if of is Of.PART:
        found = part(sql, subject)
        return replace(_below(sql, found.location_id, ("robot", found.machine_id)), part=subject)
    if of is Of.ROBOT:
        one = machine(sql, subject)
        return _below(sql, one.location_id, ("robot", subject))
    return _below(sql, subject)


def _place(owner: str, *within: tuple[str, str]) -> Place:
    return Place(owner, frozenset({("organization", owner), *within}))


def _below(sql: Sql, where: str, *within: tuple[str, str]) -> Place:
    chain = above(sql, where)
    shared = (("organization", one) for one in guests(sql, [one.id for one in chain]))
    return _place(chain[0].organization_id, *(("location", one.id) for one in chain), *shared, *within)


def captured(sql: Sql, source: Source) -> Place:
    """Where data came from: they outlive their machine and its location."""
    try:
        return _below(sql, source.location_id, ("robot", source.machine_id))
    except MachineError:
        return _place(source.organization_id, ("location", source.location_id), ("robot", source.machine_id))


def role_at(sql: Sql, author: Author, place: Place) -> Role:
    """What somebody may do at a place. UNAUTHENTICATED if the key that was shown is void."""
    if author.type in MACHINES:
        require_in_force(sql, author)
        return Role.MACHINE if place.part and place.part == author.name else Role.NOBODY
    return holder(sql, author).role(place)


def best(grants: Iterable[Grant], place: Place) -> Role:
    """The highest of the roles that reach a place, of a key whose organization has access to it."""
    return max(
        (_ROLES[grant.role] for grant in grants if (grant.kind, grant.subject) in place.within), default=Role.NOBODY
    )


def require(sql: Sql, author: Author, role: Role, of: Of, subject: str, *, home: bool = False) -> Place:
    """The place of `subject`, if `author` may act there in `role`; with `home` only by a key of its own organization.

    Role.MACHINE is the machine itself, or an owner of its own organization, with whose keys machines and uploading
    programs may sign in. NOT_FOUND for somebody who has no role there, as if it did not exist; PERMISSION for too low
    a role.
    """
    place = _own(sql, author) if _is_itself(author, of, subject) else place_of(sql, of, subject)
    has = role_at(sql, author, place)
    if has is Role.NOBODY:
        raise missing(of.value, subject)
    if role is Role.MACHINE:
        home = True
        if has is Role.OPERATOR:
            raise MachineError(
                "only the machine itself may do this, or an owner of its organization for it",
                kind=ErrorKind.PERMISSION,
                remedy="use the secret of the part, or an owner's key",
            )
    if has < role:
        raise MachineError(
            f"this needs the role of an {role.name.lower()} of the {of.value}",
            kind=ErrorKind.PERMISSION,
            remedy="use a key with that role, or ask an owner",
        )
    if home and not is_home(sql, author, place):
        raise MachineError(
            f"the {of.value} belongs to another organization, which only shares it",
            kind=ErrorKind.PERMISSION,
            remedy="ask an owner of that organization",
        )
    return place


def _is_itself(author: Author, of: Of, subject: str) -> bool:
    return of is Of.PART and author.type in MACHINES and author.name == subject


def _own(sql: Sql, author: Author) -> Place:
    """The place of a machine that calls for itself, which has no grants: its organization is all that matters."""
    return replace(_place(part(sql, author.name).organization_id), part=author.name)


def is_home(sql: Sql, author: Author, place: Place) -> bool:
    """Whether a key is of the organization that a place belongs to; True for machines."""
    return author.type != KEY or organization_of(sql, author.name) == place.organization


def visible(sql: Sql, author: Author) -> tuple[Grant, ...]:
    """The grants of somebody; none for a machine. UNAUTHENTICATED if the key that was shown is void."""
    return holder(sql, author).grants


def holder(sql: Sql, author: Author) -> Holder:
    """As `visible`, with the organization of the key."""
    require_in_force(sql, author)
    if author.type != KEY:
        return Holder()
    return Holder(organization_of(sql, author.name), grants_of(sql, author.name))


def belongs(sql: Sql, author: Author) -> str:
    """The organization of a key that has a role anywhere; "" for all others."""
    found = holder(sql, author)
    return found.organization if any(_reached(sql, found, one) for one in found.grants) else ""


def _reached(sql: Sql, found: Holder, grant: Grant) -> bool:
    try:
        return found.role(place_of(sql, OF[grant.kind], grant.subject)) is not Role.NOBODY
    except MachineError:
        return False  # it was deleted
