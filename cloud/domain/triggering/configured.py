"""Triggers of a part, from its configuration with fragments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from cloud.domain.configurations.configurations import resolved
from cloud.domain.machines.machines import part as part_of
from cloud.domain.organizations.tenants import location, organization
from cloud.store.sql import Sql
from triggers import Examined, Notification, Trigger, Where, examine_triggers

DATA: Final = frozenset({"part_data_ingested", "conditional_data_ingested"})
PRESENCE: Final = frozenset({"part_online", "part_offline"})
LOGS: Final = frozenset({"conditional_logs_ingested"})

WORD: Final = "triggers"  # is in the text of each document that has or changes some
BATCH: Final = 500  # ids in one query
_CACHE_SIZE: Final = 1024  # documents whose triggers are cached
_REMEMBERED: Final = 100_000  # revisions


@dataclass(frozen=True, slots=True)
class _CachedTriggers:
    """Cached triggers of a document: as written, parsed, with their digests and event types."""

    entries: tuple[Any, ...]
    examined: Examined
    digests: tuple[str, ...]
    types: frozenset[str]


_NOTHING: Final = _CachedTriggers((), Examined(()), (), frozenset())


_uses_data: Final[dict[tuple[str, int], bool]] = {}
"""Whether uploads matter to revisions of configurations, by part and revision: those without fragments never change."""


def uses_data(sql: Sql, part: str) -> bool:
    """Return whether a part has a trigger for uploads; NOT_FOUND.

    Every upload asks this, so the document of a revision is read once. The transaction must not change configurations:
    if it were rolled back, another revision could get the same number.
    """
    key = part, part_of(sql, part).revision
    uses = _uses_data.get(key)
    if uses is None:
        row = sql.row("SELECT document FROM configurations WHERE part_id = ? AND revision = ?", *key)
        document = "" if row is None else row["document"]
        uses = not DATA.isdisjoint(_cached_of(sql, part, document).types)
        if '"fragments"' not in document:
            if len(_uses_data) >= _REMEMBERED:
                _uses_data.clear()
            _uses_data[key] = uses
    return uses


def entries(sql: Sql, part: str) -> tuple[Any, ...]:
    """Return the current entries of `triggers`, as written; empty for an unknown part."""
    return _cached(sql, part).entries


def _cached(sql: Sql, part: str) -> _CachedTriggers:
    row = sql.row(
        """
        SELECT document FROM parts
        JOIN configurations ON part_id = parts.id AND configurations.revision = parts.revision
        WHERE parts.id = ?
        """,
        part,
    )
    return _NOTHING if row is None else _cached_of(sql, part, row["document"])


def _cached_of(sql: Sql, part: str, document: str) -> _CachedTriggers:
    if '"fragments"' not in document:
        return _of_document(document)
    triggers = resolved(sql, part).get("triggers")
    return _of_entries(json.dumps(triggers)) if isinstance(triggers, list | tuple) and triggers else _NOTHING


@lru_cache(_CACHE_SIZE)
def _of_document(text: str) -> _CachedTriggers:
    """Return the triggers of a document without fragments."""
    if '"triggers"' not in text:
        return _NOTHING
    triggers = json.loads(text).get("triggers")
    return _parsed(triggers) if isinstance(triggers, list) and triggers else _NOTHING


@lru_cache(_CACHE_SIZE)
def _of_entries(text: str) -> _CachedTriggers:
    return _parsed(json.loads(text))


def _parsed(entries: Sequence[Any]) -> _CachedTriggers:
    examined = examine_triggers(entries)
    types = frozenset(map(_type, entries))
    return _CachedTriggers(tuple(entries), examined, tuple(digest(trigger) for trigger in examined.triggers), types)


def with_triggers(sql: Sql, parts: Sequence[str]) -> dict[str, Examined]:
    """Return the triggers of those parts that have any, or have mistakes in them. Takes few queries for many parts."""
    by_part: dict[str, Examined] = {}
    fragments: dict[str, _Fragment] = {}
    for start in range(0, len(parts), BATCH):
        batch = parts[start : start + BATCH]
        rows = sql.rows(
            f"""
            SELECT parts.id AS id, document FROM parts
            JOIN configurations ON part_id = parts.id AND configurations.revision = parts.revision
            WHERE parts.id IN ({", ".join("?" * len(batch))}) AND (lower(document) LIKE ? OR lower(document) LIKE ?)
            """,
            *batch,
            '%"triggers"%',
            '%"fragments"%',
        )
        silent = [row["id"] for row in rows if WORD not in row["document"].lower()]
        from_fragments = _by_fragments(sql, silent, fragments)
        for row in rows:
            if row["id"] in from_fragments and not from_fragments[row["id"]]:
                continue
            part_triggers = _cached_of(sql, row["id"], row["document"]).examined
            if part_triggers.triggers or part_triggers.problems:
                by_part[row["id"]] = part_triggers
    return by_part


class _Fragment(NamedTuple):
    """Whether a revision of a fragment has triggers itself, and the fragments that its revisions use."""

    triggers: bool
    uses: frozenset[str]


def _by_fragments(sql: Sql, parts: Sequence[str], fragments: dict[str, _Fragment]) -> dict[str, bool]:
    """Return for each of some parts, whose documents have no triggers, whether their fragments may have any.

    `fragments` is what was read before, by id. Merging thousands of configurations takes long.
    """
    may = dict.fromkeys(parts, False)
    if not parts:
        return may
    marks = ", ".join("?" * len(parts))
    query = f"SELECT subject, fragment_id FROM fragment_uses WHERE kind = 'part' AND subject IN ({marks})"
    for row in sql.rows(query, *parts):
        may[row["subject"]] = may[row["subject"]] or _may_have_triggers(sql, row["fragment_id"], fragments)
    return may


def _may_have_triggers(sql: Sql, fragment: str, fragments: dict[str, _Fragment]) -> bool:
    """Return whether a revision of a fragment, or of those that it has ever used, has triggers."""
    seen, pending = {fragment}, [fragment]  # revisions may have used each other
    while pending:
        each = pending.pop()
        if each not in fragments:
            fragments[each] = _fragment(sql, each)
        if fragments[each].triggers:
            return True
        pending += fragments[each].uses - seen
        seen |= fragments[each].uses
    return False


def _fragment(sql: Sql, fragment: str) -> _Fragment:
    query = "SELECT revision FROM fragment_revisions WHERE fragment_id = ? AND lower(document) LIKE ? LIMIT 1"
    inner = "SELECT fragment_id FROM fragment_uses WHERE kind = 'fragment' AND subject = ?"
    return _Fragment(
        sql.row(query, fragment, f"%{WORD}%") is not None,
        frozenset(row["fragment_id"] for row in sql.rows(inner, fragment)),
    )


def listens(sql: Sql, part: str, types: frozenset[str]) -> bool:
    """Return whether a part has a trigger for one of these event types."""
    return not types.isdisjoint(_cached(sql, part).types)


def _type(entry: Any) -> str:
    event = entry.get("event") if isinstance(entry, Mapping) else None
    event_type = event.get("type") if isinstance(event, Mapping) else None
    return event_type if isinstance(event_type, str) else ""


def examined(sql: Sql, part: str) -> Examined:
    """Return the current triggers of a part, and the problems in the invalid ones."""
    return _cached(sql, part).examined


def in_force(sql: Sql, part: str) -> tuple[tuple[Trigger, str], ...]:
    """Return the current triggers of a part, each with its digest."""
    cached = _cached(sql, part)
    return tuple(zip(cached.examined.triggers, cached.digests, strict=True))


def target_of(sql: Sql, part: str, trigger: str, type: str, value: str) -> tuple[Trigger, Notification] | None:  # noqa: A002 - field of the document
    """Return a trigger and its notification entry as currently configured; None if either was removed."""
    for configured in examined(sql, part).triggers:
        for notification in configured.notifications if configured.name == trigger else ():
            if (notification.type, notification.value) == (type, value):
                return configured, notification
    return None


def where(sql: Sql, part: str) -> Where:
    """Return the names and ids of a part and of everything that contains it; NOT_FOUND."""
    record = part_of(sql, part)
    place, owner = location(sql, record.location_id), organization(sql, record.organization_id)
    return Where(
        organization_id=owner.id,
        organization_name=owner.name,
        location_id=place.id,
        location_name=place.name,
        machine_id=record.machine_id,
        machine_name=record.machine,
        part_id=part,
        part_name=record.name,
    )


def digest(trigger: Trigger) -> str:
    """Return a digest that changes if any field of the trigger changes."""
    return hashlib.sha256(msgspec.json.encode(trigger)).hexdigest()
