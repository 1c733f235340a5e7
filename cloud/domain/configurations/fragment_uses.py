"""Index of fragment uses, so that a change to a fragment reaches exactly the machines that use it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from cloud.store.sql import Row, Sql

BATCH: Final = 500  # parts in one query
Kind = Literal["part", "fragment"]


def note_uses(sql: Sql, kind: Kind, subject: str, fragment_ids: Iterable[str], *, only: bool) -> None:
    """Record the fragments that a document uses; with `only`, delete other records of it."""
    if only:
        sql.run("DELETE FROM fragment_uses WHERE kind = ? AND subject = ?", kind, subject)
    for fragment_id in sorted(fragment_ids):
        sql.run(
            "INSERT INTO fragment_uses (kind, subject, fragment_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            kind,
            subject,
            fragment_id,
        )


def parts_using(sql: Sql, subject: str) -> list[str]:
    """Return ids of parts whose current configuration uses a fragment, directly or through others."""
    parts, seen_fragments, pending = dict[str, None](), {subject}, [subject]
    while pending:
        query = "SELECT kind, subject FROM fragment_uses WHERE fragment_id = ? ORDER BY kind, subject"
        for row in sql.rows(query, pending.pop()):
            if row["kind"] == "part":
                parts[row["subject"]] = None
            elif row["subject"] not in seen_fragments:
                seen_fragments.add(row["subject"])
                pending.append(row["subject"])
    return list(parts)


def owners(sql: Sql, parts: Iterable[str]) -> dict[str, str]:
    """Return the machines of these parts, each with its organization; parts that were deleted are left out."""
    machines: dict[str, str] = {}
    for row in _places(sql, list(parts)):
        machines[row["machine_id"]] = row["organization_id"]
    return machines


def machines_of(sql: Sql, parts: Sequence[str]) -> dict[str, str]:
    """Return the machine of each of these parts; parts that were deleted are left out."""
    return {row["id"]: row["machine_id"] for row in _places(sql, parts)}


def _places(sql: Sql, parts: Sequence[str]) -> Iterator[Row]:
    for start in range(0, len(parts), BATCH):
        batch = parts[start : start + BATCH]
        yield from sql.rows(
            "SELECT parts.id AS id, machine_id, organization_id FROM parts JOIN machines ON machines.id = machine_id "
            f"JOIN locations ON locations.id = location_id WHERE parts.id IN ({', '.join('?' * len(batch))})",
            *batch,
        )


def named_by(sql: Sql, part: str) -> list[tuple[str, str]]:
    """Return ids and names of the fragments that a part's current configuration uses directly."""
    rows = sql.rows(
        "SELECT fragments.id, fragments.name FROM fragment_uses JOIN fragments ON fragments.id = fragment_id "
        "WHERE kind = 'part' AND subject = ? ORDER BY fragments.name, fragments.id",
        part,
    )
    return [(row["id"], row["name"]) for row in rows]


def of_parts(sql: Sql, parts: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return ids and names of the fragments that each part uses directly; parts without fragments are left out."""
    fragments: dict[str, list[tuple[str, str]]] = {}
    for start in range(0, len(parts), BATCH):
        batch = parts[start : start + BATCH]
        rows = sql.rows(
            "SELECT subject, fragments.id AS id, fragments.name AS name "
            "FROM fragment_uses JOIN fragments ON fragments.id = fragment_id "
            f"WHERE kind = 'part' AND subject IN ({', '.join('?' * len(batch))}) ORDER BY subject, fragments.name",
            *batch,
        )
        for row in rows:
            fragments.setdefault(row["subject"], []).append((row["id"], row["name"]))
    return fragments


def notify_parts(sql: Sql, subject: str) -> None:
    """Notify every part that uses a fragment, once the transaction has been committed."""
    for part in parts_using(sql, subject):
        sql.notify("part", part)


def pinned(sql: Sql, part: str, subject: str, tag: str) -> bool:
    """Return whether a part's current configuration refers to a fragment by this tag."""
    row = sql.row(
        "SELECT document FROM configurations JOIN parts ON parts.id = part_id AND parts.revision = "
        "configurations.revision WHERE part_id = ?",
        part,
    )
    entries = json.loads(row["document"]).get("fragments") if row is not None else None
    return any(
        isinstance(entry, Mapping) and entry.get("id") == subject and entry.get("version") == tag
        for entry in entries or ()
    )
