"""Who may read what of the registry: what is public, and what one's own organization has."""

from __future__ import annotations

from cloud.access import Of, belongs, place_of
from cloud.author import MACHINES, Author
from cloud.registry import items
from cloud.registry.items import PRIVATE, Item
from cloud.store.sql import Sql
from cloud.tenants import missing
from schema.errors import MachineError


def organizations_of(sql: Sql, author: Author) -> set[str]:
    """The organization in which somebody has a role anywhere, or whose machine it is; not those that share with it."""
    if author.type in MACHINES:
        try:
            return {place_of(sql, Of.PART, author.name).organization}
        except MachineError:
            return set()  # it was deleted
    owner = belongs(sql, author)
    return {owner} if owner else set()


def readable(sql: Sql, author: Author, found: Item, named: str = "") -> Item:
    """`found`; NOT_FOUND, as if it were not there, for somebody who may not read it."""
    if found.visibility == PRIVATE and found.organization_id not in organizations_of(sql, author):
        raise missing(items.KIND, named or found.id)
    return found


def find(sql: Sql, author: Author, named: str) -> Item:
    """As items.find, for somebody who may read it; NOT_FOUND otherwise."""
    return readable(sql, author, items.find(sql, named), named)
