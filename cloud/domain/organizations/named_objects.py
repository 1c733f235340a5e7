"""Fragments and datasets by words of their names, for the search of the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cloud.store.sql import Sql, literal
from cloud.values.limits import DATASETS, FLEET_WORDS

TABLES: Final = {"fragment": "fragments", "dataset": "datasets"}
"""Tables of objects whose names are unique in their organization, by kind."""


@dataclass(frozen=True, slots=True)
class NamedObject:
    """A fragment or a dataset."""

    kind: str
    id: str
    name: str


def search(sql: Sql, owner: str, text: str, limit: int) -> list[NamedObject]:
    """Return up to `limit` objects of each kind of an organization whose names have all words of `text`, by name."""
    words = text.lower().split()[: FLEET_WORDS.value]
    if not words:
        return []
    plain = [word for word in words if word.isascii()]  # SQLite lowers only ASCII
    conditions = " AND lower(name) LIKE ? ESCAPE '!'" * len(plain)
    patterns = [f"%{literal(word)}%" for word in plain]
    most = limit if plain == words else DATASETS.value
    matches = []
    for kind, table in TABLES.items():
        query = f"SELECT id, name FROM {table} WHERE organization_id = ?{conditions} ORDER BY name LIMIT ?"
        rows = [
            NamedObject(kind, row["id"], row["name"])
            for row in sql.rows(query, owner, *patterns, most)
            if all(word in row["name"].lower() for word in words)
        ]
        matches += rows[:limit]
    return matches
