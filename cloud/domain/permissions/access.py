"""Roles at organizations, locations and machines; each applies to everything below.

Keys of an organization that a location is shared with have their roles there too, except for calls that require `home`:
decisions about ownership stay with the organization that the location belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import Final

from cloud.domain.alerts import states as alerts
from cloud.domain.configurations.fragments import fragment
from cloud.domain.data.datasets import dataset
from cloud.domain.data.files import file
from cloud.domain.data.sources import DataSource
from cloud.domain.machines.machines import machine, part
from cloud.domain.organizations.keys import Grant, grants_of, key, organization_of
from cloud.domain.organizations.saved_queries import saved_query
from cloud.domain.organizations.sharing import guests
from cloud.domain.organizations.tenants import above, missing, organization
from cloud.domain.permissions.credentials import require_in_force
from cloud.domain.registry.items import find
from cloud.domain.training.jobs import job
from cloud.store.sql import Sql
from cloud.values.author import KEY, MACHINES, Author
from schema import ErrorKind, MachineError


class Role(IntEnum):
    """Role of a caller; each role includes the lower ones."""

    NONE = 0
    MACHINE = 1  # the machine itself; owners may act for it, operators may not
    OPERATOR = 2  # views and controls machines
    OWNER = 3  # changes everything


class ObjectKind(Enum):
    """Kind of object that an id in a request refers to."""

    ORGANIZATION = "organization"
    LOCATION = "location"
    ROBOT = "machine"
    PART = "part"
    KEY = "key"
    FRAGMENT = "fragment"
    DATASET = "dataset"
    FILE = "file"
    ITEM = "registry item"
    JOB = "training job"
    QUERY = "saved query"
    ALERT = "alert"


SHARED: Final = frozenset({ObjectKind.LOCATION, ObjectKind.ROBOT, ObjectKind.PART, ObjectKind.FILE})
"""Kinds of objects at which keys of an organization that a location is shared with may have a role."""

GRANT_KINDS: Final = {
    "organization": ObjectKind.ORGANIZATION,
    "location": ObjectKind.LOCATION,
    "robot": ObjectKind.ROBOT,
}
"""Kind of object for each kind of grant."""

_ROLES: Final = {"operator": Role.OPERATOR, "owner": Role.OWNER}


@dataclass(frozen=True, slots=True)
class Place:
    """Position of an object: ids of its organization and of everything between that and the object, inclusive."""

    organization: str
    within: frozenset[tuple[str, str]]  # (kind of grant, id); includes all organizations with access
    part: str = ""

    def reached_by(self, owner: str) -> bool:
        """Return whether keys of an organization may have a role here, as owner or because of sharing."""
        return ("organization", owner) in self.within


@dataclass(frozen=True, slots=True)
class Holder:
    """Roles of a key. They apply only where its organization has access. An anonymous caller has no roles."""

    organization: str = ""
    grants: tuple[Grant, ...] = ()

    def role(self, place: Place) -> Role:
        """Return the highest role that applies to a place."""
        return best(self.grants, place) if place.reached_by(self.organization) else Role.NONE


def place_of(sql: Sql, of: ObjectKind, subject: str) -> Place:
    """Return the place of `subject`; NOT_FOUND."""
    if of is ObjectKind.ORGANIZATION:
        organization(sql, subject)
        return _place(subject)
    if of is ObjectKind.KEY:
        return _place(key(sql, subject).organization_id)
    if of is ObjectKind.FRAGMENT:
        return _place(fragment(sql, subject).organization_id)
    if of is ObjectKind.ITEM:
        return _place(find(sql, subject).organization_id)
    if of is ObjectKind.DATASET:
        return _place(dataset(sql, subject).organization_id)
    if of is ObjectKind.QUERY:
        return _place(saved_query(sql, subject).organization_id)
    if of is ObjectKind.ALERT:
        return _of_alert(sql, subject)
    if of is ObjectKind.JOB:
        return _place(job(sql, subject).task.organization_id)
    if of is ObjectKind.FILE:
        return captured(sql, file(sql, subject).source)
    if of is ObjectKind.PART:
        part_record = part(sql, subject)
        return replace(_below(sql, part_record.location_id, ("robot", part_record.machine_id)), part=subject)
    if of is ObjectKind.ROBOT:
        return _below(sql, machine(sql, subject).location_id, ("robot", subject))
    return _below(sql, subject)


def _of_alert(sql: Sql, subject: str) -> Place:
    """Return the place of an alert: its part, for keys of its organization only."""
    owner, part_id = alerts.owner_of(sql, subject)
    try:
        place = place_of(sql, ObjectKind.PART, part_id) if part_id else _place(owner)
    except MachineError:
        return _place(owner)  # the part was deleted
    within = frozenset(each for each in place.within if each[0] != "organization" or each[1] == owner)
    return replace(place, within=within, part="")


def _place(owner: str, *within: tuple[str, str]) -> Place:
    return Place(owner, frozenset({("organization", owner), *within}))


def _below(sql: Sql, location_id: str, *within: tuple[str, str]) -> Place:
    chain = above(sql, location_id)
    shared = (("organization", guest) for guest in guests(sql, [location.id for location in chain]))
    return _place(chain[0].organization_id, *(("location", location.id) for location in chain), *shared, *within)


def captured(sql: Sql, source: DataSource) -> Place:
    """Return the place where data were captured; it may name a machine or location that was deleted since."""
    try:
        return _below(sql, source.location_id, ("robot", source.machine_id))
    except MachineError:
        return _place(source.organization_id, ("location", source.location_id), ("robot", source.machine_id))


def role_at(sql: Sql, author: Author, place: Place) -> Role:
    """Return the role of a caller at a place. UNAUTHENTICATED if its credential was revoked."""
    if author.type in MACHINES:
        require_in_force(sql, author)
        return Role.MACHINE if place.part and place.part == author.name else Role.NONE
    return holder(sql, author).role(place)


def best(grants: Iterable[Grant], place: Place) -> Role:
    """Return the highest role that applies to a place, for a key whose organization has access to it."""
    return max(
        (_ROLES[grant.role] for grant in grants if (grant.kind, grant.subject) in place.within), default=Role.NONE
    )


def require(sql: Sql, author: Author, role: Role, of: ObjectKind, subject: str, *, home: bool = False) -> Place:
    """Check that `author` has at least `role` at `subject`, and return its place.

    With `home`, only keys of the object's own organization pass. Role.MACHINE means the machine itself, or an owner in
    its own organization, because machines and uploading programs may log in with owner keys. NOT_FOUND if the caller
    has no role there, as if the object did not exist; PERMISSION if the role is too low.
    """
    place = _own_place(sql, author) if _is_itself(author, of, subject) else place_of(sql, of, subject)
    actual_role = role_at(sql, author, place)
    if actual_role is Role.NONE:
        raise missing(of.value, subject)
    if role is Role.MACHINE:
        home = True
        if actual_role is Role.OPERATOR:
            raise MachineError(
                "only the machine itself or an owner of its organization may do this",
                kind=ErrorKind.PERMISSION,
                remedy="use the secret of the part, or an owner's key",
            )
    if actual_role < role:
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


def _is_itself(author: Author, of: ObjectKind, subject: str) -> bool:
    return of is ObjectKind.PART and author.type in MACHINES and author.name == subject


def _own_place(sql: Sql, author: Author) -> Place:
    """Return the place of a machine that calls for itself. It has no grants, so only its organization matters."""
    return replace(_place(part(sql, author.name).organization_id), part=author.name)


def is_home(sql: Sql, author: Author, place: Place) -> bool:
    """Return whether a key belongs to the organization of a place; True for machines."""
    return author.type != KEY or organization_of(sql, author.name) == place.organization


def visible(sql: Sql, author: Author) -> tuple[Grant, ...]:
    """Return the grants of a caller; empty for a machine. UNAUTHENTICATED if its credential was revoked."""
    return holder(sql, author).grants


def holder(sql: Sql, author: Author) -> Holder:
    """Return the grants and the organization of a caller; see `visible`."""
    require_in_force(sql, author)
    if author.type != KEY:
        return Holder()
    return Holder(organization_of(sql, author.name), grants_of(sql, author.name))


def belongs(sql: Sql, author: Author) -> str:
    """Return the organization of a key that has a role anywhere; "" for all other callers."""
    key_holder = holder(sql, author)
    return key_holder.organization if any(_reached(sql, key_holder, grant) for grant in key_holder.grants) else ""


def operated(sql: Sql, author: Author) -> str:
    """Return the organization of a key that is an operator of all of it; "" for all other callers."""
    key_holder = holder(sql, author)
    if not key_holder.organization:
        return ""
    role = key_holder.role(place_of(sql, ObjectKind.ORGANIZATION, key_holder.organization))
    return "" if role < Role.OPERATOR else key_holder.organization


def _reached(sql: Sql, key_holder: Holder, grant: Grant) -> bool:
    try:
        return key_holder.role(place_of(sql, GRANT_KINDS[grant.kind], grant.subject)) is not Role.NONE
    except MachineError:
        return False  # it was deleted
