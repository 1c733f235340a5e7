"""Items of the registry: named objects with versions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.organizations.tenants import missing
from cloud.store import trash
from cloud.store.sql import Conflict, Sql, Value, counted, inserted
from cloud.values.limits import REGISTRY_ITEMS
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

MODULE: Final = "module"
TYPES: Final = ("archive", "ml_model", MODULE, "slam_map", "ml_training")
PRIVATE: Final = "private"
VISIBILITIES: Final = (PRIVATE, "public", "public_unlisted")
TOPIC: Final = "registry"  # event topic; subjects are items whose versions or visibility change
KIND: Final = "registry item"  # in error messages
MAX_NAME: Final = 60
MAX_TEXT: Final = 256 * 1024  # characters in a description or in metadata
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class RegistryItem:
    """An item with versions. `wire_id` is its name for machines and clients."""

    id: str
    organization_id: str
    namespace: str
    name: str
    type: str
    visibility: str
    url: str
    description: str
    metadata: Mapping[str, Any]
    created: datetime
    updated: datetime

    @property
    def wire_id(self) -> str:
        """`namespace:name`, with the organization's id if it has no namespace."""
        return f"{self.namespace or self.organization_id}:{self.name}"

    @property
    def package(self) -> str:
        """Name of the item in the packages of a configuration."""
        return f"{self.organization_id}/{self.name}"


_ITEM: Final = """
    SELECT registry_items.id, organization_id, namespace, registry_items.name, type, visibility, url, description,
        registry_items.metadata, registry_items.created, updated
    FROM registry_items JOIN organizations ON organizations.id = registry_items.organization_id
"""


def create(sql: Sql, owner: str, name: str, kind: str, now: datetime) -> RegistryItem:
    """Create an item without versions, private to its organization; EXISTS, INVALID."""
    REGISTRY_ITEMS.check_count(counted(sql, "registry_items", "organization_id", owner), "the organization")
    subject, moment = new_id(), stored(now)
    row: dict[str, Value] = {"id": subject, "organization_id": owner, "name": checked_name(name), "type": kind}
    empty: dict[str, Value] = {"visibility": PRIVATE, "url": "", "description": "", "metadata": "{}"}
    try:
        inserted(sql, "registry_items", {**row, **empty, "created": moment, "updated": moment})
    except Conflict:
        raise _name_taken(name) from None
    return item(sql, subject)


def checked_name(name: str) -> str:
    """Return a valid name; INVALID for one that cannot be used in a configuration."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise MachineError(
            f"{name[:40]!r} is not a valid name for a registry entry",
            kind=ErrorKind.INVALID,
            remedy=f"use 1 to {MAX_NAME} letters, digits, - and _, with a letter or digit first",
        )
    return name


def item(sql: Sql, subject: str) -> RegistryItem:
    """Return one item by its id; NOT_FOUND."""
    row = sql.row(f"{_ITEM} WHERE registry_items.id = ?", subject)
    if row is None:
        raise missing(KIND, subject)
    return _item(row)


def find(sql: Sql, name_or_id: str) -> RegistryItem:
    """Return the item `namespace:name`; NOT_FOUND.

    The organization's id may replace the namespace, and / the colon.
    """
    owner, _, name = name_or_id.replace("/", ":", 1).partition(":")
    row = sql.row(
        f"{_ITEM} WHERE registry_items.name = ? AND (namespace = ? OR organization_id = ?)", name, owner, owner
    )
    if row is None:
        raise missing(KIND, name_or_id)
    return _item(row)


def of_organization(sql: Sql, owner: str) -> list[RegistryItem]:
    """Return all items of an organization, ordered by name."""
    return [_item(row) for row in sql.rows(f"{_ITEM} WHERE organization_id = ? ORDER BY registry_items.name", owner)]


def public(sql: Sql) -> list[RegistryItem]:
    """Return the items that all organizations see in lists, ordered by name."""
    return [
        _item(row)
        for row in sql.rows(f"{_ITEM} WHERE visibility = 'public' ORDER BY registry_items.name, registry_items.id")
    ]


def _item(row: Mapping[str, Any]) -> RegistryItem:
    return RegistryItem(
        id=row["id"],
        organization_id=row["organization_id"],
        namespace=row["namespace"] or "",
        name=row["name"],
        type=row["type"],
        visibility=row["visibility"],
        url=row["url"],
        description=row["description"],
        metadata=json.loads(row["metadata"]),
        created=moment_of(row["created"]),
        updated=moment_of(row["updated"]),
    )


def update(
    sql: Sql,
    record: RegistryItem,
    now: datetime,
    *,
    visibility: str | None = None,
    url: str | None = None,
    description: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Change the given fields; `metadata` is merged. PRECONDITION to publish an item without a namespace."""
    if visibility not in (None, PRIVATE) and not record.namespace:
        raise MachineError(
            "only an organization with a namespace can publish registry entries",
            kind=ErrorKind.PRECONDITION,
            remedy="give it one: `machine cloud modules namespace NAME`, or update_organization with public_namespace",
        )
    text = json.dumps({**record.metadata, **(metadata or {})})
    if len(text) > MAX_TEXT or len(description or "") > MAX_TEXT:
        raise MachineError(
            f"the description or the metadata is longer than {MAX_TEXT} characters",
            kind=ErrorKind.INVALID,
            remedy="shorten it",
        )
    sql.run(
        "UPDATE registry_items SET visibility = ?, url = ?, description = ?, metadata = ?, updated = ? WHERE id = ?",
        record.visibility if visibility is None else visibility,
        record.url if url is None else url,
        record.description if description is None else description,
        text,
        stored(now),
        record.id,
    )
    sql.notify(TOPIC, record.id)


def rename(sql: Sql, record: RegistryItem, name: str, now: datetime) -> None:
    """Rename an item; configurations with the old name no longer find it. EXISTS, INVALID."""
    try:
        sql.run(
            "UPDATE registry_items SET name = ?, updated = ? WHERE id = ?", checked_name(name), stored(now), record.id
        )
    except Conflict:
        raise _name_taken(name) from None
    sql.notify(TOPIC, record.id)


def delete(sql: Sql, record: RegistryItem, now: datetime) -> None:
    """Delete an item with all its versions. Their contents go to the trash."""
    blobs = [row["blob"] for row in sql.rows("SELECT blob FROM registry_files WHERE item_id = ?", record.id)]
    sql.run("DELETE FROM registry_files WHERE item_id = ?", record.id)
    sql.run("DELETE FROM registry_items WHERE id = ?", record.id)
    trash.put(sql, blobs, now)
    sql.notify(TOPIC, record.id)


def _name_taken(name: str) -> MachineError:
    return MachineError(
        f"the organization already has a registry entry called {name!r}",
        kind=ErrorKind.EXISTS,
        remedy="choose another name",
    )
