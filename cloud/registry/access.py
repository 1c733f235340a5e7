"""Who may read what of the registry: what is public, and what one's own organization has."""

from __future__ import annotations

from cloud.access import Of, place_of, visible
from cloud.author import PART, Author
from cloud.registry import items
from cloud.registry.items import PRIVATE, Item
from cloud.store.sql import Sql
from cloud.tenants import missing
from schema.errors import MachineError

_OF = {"organization": Of.ORGANIZATION, "location": Of.LOCATION, "robot": Of.ROBOT}


def organizations_of(sql: Sql, author: Author) -> set[str]:
    """Organizations in which somebody has a role anywhere, or whose machine it is."""
    subjects = [(_OF[grant.kind], grant.subject) for grant in visible(sql, author)]
    if author.type == PART:
        subjects = [(Of.PART, author.name)]
    found: set[str] = set()
    for of, subject in subjects:
        try:
            found.add(place_of(sql, of, subject).organization)
        except MachineError:
            continue  # it was deleted
    return found


def readable(sql: Sql, author: Author, found: Item, named: str = "") -> Item:
    """`found`; NOT_FOUND, as if it were not there, for somebody who may not read it."""
    if found.visibility == PRIVATE and found.organization_id not in organizations_of(sql, author):
        raise missing(items.KIND, named or found.id)
    return found


def find(sql: Sql, author: Author, named: str) -> Item:
    """As items.find, for somebody who may read it; NOT_FOUND otherwise."""
    return readable(sql, author, items.find(sql, named), named)
