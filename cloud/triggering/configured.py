"""The triggers of a part, as its configuration with fragments says them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from cloud.configurations import resolved
from cloud.store.sql import Sql

DATA: Final = frozenset({"part_data_ingested", "conditional_data_ingested"})
PRESENCE: Final = frozenset({"part_online", "part_offline"})
LOGS: Final = frozenset({"conditional_logs_ingested"})

_KEPT: Final = 1024  # documents of which it is remembered what triggers they have


def entries(sql: Sql, part: str) -> tuple[Any, ...]:
    """The entries of `triggers` in force, as they were written; none for a part that is not there."""
    row = sql.row(
        """
        SELECT document FROM parts
        JOIN configurations ON part_id = parts.id AND configurations.revision = parts.revision
        WHERE parts.id = ?
        """,
        part,
    )
    if row is None:
        return ()
    if '"fragments"' in row["document"]:
        found = resolved(sql, part).get("triggers")
        return tuple(found) if isinstance(found, list | tuple) else ()
    return _entries(row["document"])


def listens(sql: Sql, part: str, types: frozenset[str]) -> bool:
    """Whether a part has a trigger for one of these types of events. Cheap: it is asked at every upload."""
    return any(_type(one) in types for one in entries(sql, part))


def _type(entry: Any) -> str:
    event = entry.get("event") if isinstance(entry, Mapping) else None
    found = event.get("type") if isinstance(event, Mapping) else None
    return found if isinstance(found, str) else ""


@lru_cache(_KEPT)
def _entries(text: str) -> tuple[Any, ...]:
    if '"triggers"' not in text:
        return ()
    found = json.loads(text).get("triggers")
    return tuple(found) if isinstance(found, list) else ()
