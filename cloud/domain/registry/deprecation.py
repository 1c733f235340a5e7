"""Deprecation of registry items and versions. Machines that use them keep them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.registry import files, items
from cloud.domain.registry.files import File
from cloud.domain.registry.items import PRIVATE, TOPIC, Item
from cloud.store.sql import Sql
from cloud.values.times import moment_of, stored
from schema.errors import ErrorKind, MachineError

MAX_TEXT: Final = 2000  # characters in a message
_ITEM: Final = "item_deprecated"  # key in the metadata of an item
_FILE: Final = "deprecated"  # key in the metadata of a version's files, which also include the item's at the upload


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Time of a deprecation, and what to do instead."""

    at: datetime
    message: str


def deprecate(sql: Sql, found: Item, message: str, now: datetime, version: str = "") -> None:
    """Deprecate an item, or one of its versions; NOT_FOUND, INVALID for a message that is too long."""
    if len(message) > MAX_TEXT:
        text = f"the message is longer than {MAX_TEXT} characters"
        raise MachineError(text, kind=ErrorKind.INVALID, remedy="shorten it")
    _note(sql, found, version, {"at": stored(now), "message": message}, now)


def undeprecate(sql: Sql, found: Item, now: datetime, version: str = "") -> None:
    """Undo a deprecation; NOT_FOUND for an unknown version."""
    _note(sql, found, version, None, now)


def of_item(found: Item) -> Deprecation | None:
    """Return the deprecation of an item; None if it is not deprecated."""
    return _read(found.metadata.get(_ITEM))


def of_version(uploads: Iterable[File]) -> Deprecation | None:
    """Return the deprecation of the version with these files; None if it is not deprecated."""
    return next((said for one in uploads if (said := _read(one.metadata.get(_FILE))) is not None), None)


def advice(sql: Sql, organization: str) -> dict[tuple[str, str], str]:
    """Return the deprecations of what an organization may use; with an empty organization, those of public items.

    The result maps id and version to the message; the version is empty for a whole item. Each item is listed under
    `owner:name` twice, with its namespace (if any) and with the organization's id as the owner.
    """
    readable = (PRIVATE, organization)
    rows = sql.rows(
        f"""
        SELECT namespace, organization_id, registry_items.name AS name, '' AS version,
            registry_items.metadata AS metadata
        {_READABLE} AND lower(registry_items.metadata) LIKE ?
        UNION ALL
        SELECT namespace, organization_id, registry_items.name AS name, version, registry_files.metadata AS metadata
        {_READABLE.replace("WHERE", "JOIN registry_files ON item_id = registry_items.id WHERE")}
            AND lower(registry_files.metadata) LIKE ?
        """,
        *readable, f'%"{_ITEM}": {{%', *readable, f'%"{_FILE}": {{%',
    )  # fmt: skip
    found = {}
    for row in rows:
        if (said := _read(json.loads(row["metadata"]).get(_FILE if row["version"] else _ITEM))) is not None:
            for owner in filter(None, (row["namespace"], row["organization_id"])):
                found[f"{owner}:{row['name']}", row["version"]] = said.message
    return found


_READABLE: Final = """
        FROM registry_items JOIN organizations ON organizations.id = organization_id
        WHERE (visibility <> ? OR organization_id = ?)"""


def _note(sql: Sql, found: Item, version: str, said: Mapping[str, Any] | None, now: datetime) -> None:
    if not version:
        items.update(sql, found, now, metadata={_ITEM: said})
        return
    uploads = [one for one in files.files(sql, found.id) if one.version == version]
    if not uploads:
        raise MachineError(f"{found.wire_id} has no version {version[:60]!r}", kind=ErrorKind.NOT_FOUND)
    for one in uploads:
        text = json.dumps({**one.metadata, _FILE: said})
        sql.run("UPDATE registry_files SET metadata = ? WHERE id = ?", text, one.id)
    sql.notify(TOPIC, found.id)


def _read(said: Mapping[str, Any] | None) -> Deprecation | None:
    return None if said is None else Deprecation(moment_of(said["at"]), said["message"])
