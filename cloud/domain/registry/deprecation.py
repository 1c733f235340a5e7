"""Deprecation of registry items and versions. Machines that use them keep them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.registry import files, items
from cloud.domain.registry.files import File
from cloud.domain.registry.items import PRIVATE, TOPIC, RegistryItem
from cloud.store.sql import Sql
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

MAX_TEXT: Final = 2000  # characters in a message
_ITEM: Final = "item_deprecated"  # key in the metadata of an item
_FILE: Final = "deprecated"  # key in the metadata of a version's files, which also include the item's at the upload


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Time of a deprecation, and what to do instead."""

    at: datetime
    message: str


def deprecate(sql: Sql, item: RegistryItem, message: str, now: datetime, version: str = "") -> None:
    """Deprecate an item, or one of its versions; NOT_FOUND, INVALID for a message that is too long."""
    if len(message) > MAX_TEXT:
        text = f"the message is longer than {MAX_TEXT} characters"
        raise MachineError(text, kind=ErrorKind.INVALID, remedy="shorten it")
    _note(sql, item, version, {"at": stored(now), "message": message}, now)


def undeprecate(sql: Sql, item: RegistryItem, now: datetime, version: str = "") -> None:
    """Undo a deprecation; NOT_FOUND for an unknown version."""
    _note(sql, item, version, None, now)


def of_item(item: RegistryItem) -> Deprecation | None:
    """Return the deprecation of an item; None if it is not deprecated."""
    return _read(item.metadata.get(_ITEM))


def of_version(uploads: Iterable[File]) -> Deprecation | None:
    """Return the deprecation of the version with these files; None if it is not deprecated."""
    return next(
        (deprecation for upload in uploads if (deprecation := _read(upload.metadata.get(_FILE))) is not None), None
    )


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
    messages = {}
    for row in rows:
        if (deprecation := _read(json.loads(row["metadata"]).get(_FILE if row["version"] else _ITEM))) is not None:
            for owner in filter(None, (row["namespace"], row["organization_id"])):
                messages[f"{owner}:{row['name']}", row["version"]] = deprecation.message
    return messages


_READABLE: Final = """
        FROM registry_items JOIN organizations ON organizations.id = organization_id
        WHERE (visibility <> ? OR organization_id = ?)"""


def _note(sql: Sql, item: RegistryItem, version: str, content: Mapping[str, Any] | None, now: datetime) -> None:
    if not version:
        items.update(sql, item, now, metadata={_ITEM: content})
        return
    uploads = [upload for upload in files.files(sql, item.id) if upload.version == version]
    if not uploads:
        raise MachineError(f"{item.wire_id} has no version {version[:60]!r}", kind=ErrorKind.NOT_FOUND)
    for upload in uploads:
        text = json.dumps({**upload.metadata, _FILE: content})
        sql.run("UPDATE registry_files SET metadata = ? WHERE id = ?", text, upload.id)
    sql.notify(TOPIC, item.id)


def _read(content: Mapping[str, Any] | None) -> Deprecation | None:
    return None if content is None else Deprecation(moment_of(content["at"]), content["message"])
