"""Triggers of a part, from its configuration with fragments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from cloud.domain.configurations.configurations import resolved
from cloud.domain.machines.machines import part as part_of
from cloud.domain.organizations.tenants import location, organization
from cloud.store.sql import Sql
from triggers.document import Examined, Notification, Trigger, examine
from triggers.events import Where

DATA: Final = frozenset({"part_data_ingested", "conditional_data_ingested"})
PRESENCE: Final = frozenset({"part_online", "part_offline"})
LOGS: Final = frozenset({"conditional_logs_ingested"})

BATCH: Final = 500  # ids in one query
_KEPT: Final = 1024  # documents whose triggers are cached


@dataclass(frozen=True, slots=True)
class _Known:
    """Cached triggers of a document: as written, parsed, with their digests and event types."""

    entries: tuple[Any, ...]
    examined: Examined
    digests: tuple[str, ...]
    types: frozenset[str]


_NOTHING: Final = _Known((), Examined(()), (), frozenset())


def entries(sql: Sql, part: str) -> tuple[Any, ...]:
    """Return the current entries of `triggers`, as written; empty for an unknown part."""
    return _known(sql, part).entries


def _known(sql: Sql, part: str) -> _Known:
    row = sql.row(
        """
        SELECT document FROM parts
        JOIN configurations ON part_id = parts.id AND configurations.revision = parts.revision
        WHERE parts.id = ?
        """,
        part,
    )
    return _NOTHING if row is None else _of(sql, part, row["document"])


def _of(sql: Sql, part: str, document: str) -> _Known:
    if '"fragments"' not in document:
        return _of_document(document)
    found = resolved(sql, part).get("triggers")
    return _of_entries(json.dumps(found)) if isinstance(found, list | tuple) and found else _NOTHING


@lru_cache(_KEPT)
def _of_document(text: str) -> _Known:
    """Return the triggers of a document without fragments."""
    if '"triggers"' not in text:
        return _NOTHING
    found = json.loads(text).get("triggers")
    return _made(found) if isinstance(found, list) and found else _NOTHING


@lru_cache(_KEPT)
def _of_entries(text: str) -> _Known:
    return _made(json.loads(text))


def _made(found: Sequence[Any]) -> _Known:
    read = examine(found)
    types = frozenset(map(_type, found))
    return _Known(tuple(found), read, tuple(digest(one) for one in read.triggers), types)


def with_triggers(sql: Sql, parts: Sequence[str]) -> dict[str, Examined]:
    """Return the triggers of those parts that have any, or have mistakes in them. Takes few queries for many parts."""
    found: dict[str, Examined] = {}
    for start in range(0, len(parts), BATCH):
        some = parts[start : start + BATCH]
        rows = sql.rows(
            f"""
            SELECT parts.id AS id, document FROM parts
            JOIN configurations ON part_id = parts.id AND configurations.revision = parts.revision
            WHERE parts.id IN ({", ".join("?" * len(some))}) AND (lower(document) LIKE ? OR lower(document) LIKE ?)
            """,
            *some,
            '%"triggers"%',
            '%"fragments"%',
        )
        for row in rows:
            have = _of(sql, row["id"], row["document"]).examined
            if have.triggers or have.problems:
                found[row["id"]] = have
    return found


def listens(sql: Sql, part: str, types: frozenset[str]) -> bool:
    """Return whether a part has a trigger for one of these event types. Fast, because every upload calls it."""
    return not types.isdisjoint(_known(sql, part).types)


def _type(entry: Any) -> str:
    event = entry.get("event") if isinstance(entry, Mapping) else None
    found = event.get("type") if isinstance(event, Mapping) else None
    return found if isinstance(found, str) else ""


def examined(sql: Sql, part: str) -> Examined:
    """Return the current triggers of a part, and the problems in the invalid ones."""
    return _known(sql, part).examined


def in_force(sql: Sql, part: str) -> tuple[tuple[Trigger, str], ...]:
    """Return the current triggers of a part, each with its digest."""
    found = _known(sql, part)
    return tuple(zip(found.examined.triggers, found.digests, strict=True))


def target_of(sql: Sql, part: str, trigger: str, type: str, value: str) -> tuple[Trigger, Notification] | None:  # noqa: A002 - field of the document
    """Return a trigger and its notification entry as currently configured; None if either was removed."""
    for one in examined(sql, part).triggers:
        for notification in one.notifications if one.name == trigger else ():
            if (notification.type, notification.value) == (type, value):
                return one, notification
    return None


def where(sql: Sql, part: str) -> Where:
    """Return the names and ids of a part and of everything that contains it; NOT_FOUND."""
    found = part_of(sql, part)
    place, owner = location(sql, found.location_id), organization(sql, found.organization_id)
    return Where(
        organization_id=owner.id,
        organization_name=owner.name,
        location_id=place.id,
        location_name=place.name,
        machine_id=found.machine_id,
        machine_name=found.machine,
        part_id=part,
        part_name=found.name,
    )


def digest(trigger: Trigger) -> str:
    """Return a digest that changes if any field of the trigger changes."""
    return hashlib.sha256(msgspec.json.encode(trigger)).hexdigest()
