"""Read access to the registry: public items, and those of the caller's organization."""

from __future__ import annotations

from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, belongs, place_of
from cloud.domain.registry import items
from cloud.domain.registry.items import PRIVATE, RegistryItem
from cloud.store.sql import Sql
from cloud.values.author import MACHINES, Author
from schema import MachineError


def organizations_of(sql: Sql, author: Author) -> set[str]:
    """Return the organization of the caller, if it is a machine or a key with any role; empty otherwise.

    Organizations that share locations with it are not included.
    """
    if author.type in MACHINES:
        try:
            return {place_of(sql, ObjectKind.PART, author.name).organization}
        except MachineError:
            return set()  # deleted since
    owner = belongs(sql, author)
    return {owner} if owner else set()


def readable(sql: Sql, author: Author, item: RegistryItem, shown_name: str = "") -> RegistryItem:
    """Return `item`; NOT_FOUND, as if it did not exist, if the caller may not read it."""
    if item.visibility == PRIVATE and item.organization_id not in organizations_of(sql, author):
        raise missing(items.KIND, shown_name or item.id)
    return item


def find(sql: Sql, author: Author, name: str) -> RegistryItem:
    """Return the item `namespace:name`; NOT_FOUND also if the caller may not read the item."""
    return readable(sql, author, items.find(sql, name), name)
