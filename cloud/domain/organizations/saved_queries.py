"""Saved queries: named queries of an organization, in SQL or in MongoDB's language of aggregations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.organizations.tenants import missing, organization
from cloud.store.sql import Conflict, Sql, Value, counted, inserted
from cloud.values.limits import SAVED_QUERIES, SQL_TEXT
from cloud.values.names import checked_name, new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

SQL: Final = "sql"
MQL: Final = "mql"
_COLUMNS: Final = "SELECT id, organization_id, name, language, query, created, updated FROM saved_queries"


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query: `text` is SQL, or the stages of an aggregation in BSON, as hexadecimal digits."""

    id: str
    organization_id: str
    name: str
    language: str
    text: str
    created: datetime
    updated: datetime


def create(sql: Sql, owner: str, name: str, language: str, text: str, now: datetime) -> str:
    """Save a query; return its id. EXISTS if the name is taken in the organization."""
    organization(sql, owner)
    SAVED_QUERIES.check_count(counted(sql, "saved_queries", "organization_id", owner), "the organization")
    subject = new_id()
    row: dict[str, Value] = {
        "id": subject,
        "organization_id": owner,
        "name": checked_name(name, "a query"),
        "language": language,
        "query": checked_text(text, language),
        "created": stored(now),
        "updated": stored(now),
    }
    try:
        inserted(sql, "saved_queries", row)
    except Conflict:
        raise _name_taken(name) from None
    return subject


def saved_query(sql: Sql, subject: str) -> SavedQuery:
    """Return a query; NOT_FOUND."""
    row = sql.row(f"{_COLUMNS} WHERE id = ?", subject)
    if row is None:
        raise missing("saved query", subject)
    return _record(row)


def saved_queries(sql: Sql, owner: str, language: str, limit: int) -> list[SavedQuery]:
    """Return queries of an organization in a language, ordered by name, at most `limit`."""
    rows = sql.rows(
        f"{_COLUMNS} WHERE organization_id = ? AND language = ? ORDER BY name LIMIT ?", owner, language, limit
    )
    return [_record(row) for row in rows]


def update(sql: Sql, subject: str, name: str, language: str, text: str, now: datetime) -> None:
    """Change the name and text of a query; an empty one stays as it is. PRECONDITION if its language is another."""
    current = saved_query(sql, subject)
    require_language(current, language)
    name = checked_name(name, "a query") if name else current.name
    text = checked_text(text, language) if text else current.text
    values = (name, text, stored(now), subject)
    try:
        sql.run("UPDATE saved_queries SET name = ?, query = ?, updated = ? WHERE id = ?", *values)
    except Conflict:
        raise _name_taken(name) from None


def of_name(sql: Sql, owner: str, name: str) -> SavedQuery:
    """Return the aggregation of an organization with this name; NOT_FOUND."""
    row = sql.row(f"{_COLUMNS} WHERE organization_id = ? AND name = ?", owner, name)
    if row is None:
        raise missing("saved query", name)
    query = _record(row)
    require_language(query, MQL)
    return query


def stages_of(query: SavedQuery) -> list[bytes]:
    """Return the stages of an aggregation, each as BSON."""
    content, stages = bytes.fromhex(query.text), list[bytes]()
    while content:
        size = int.from_bytes(content[:4], "little")  # BSON begins with its length
        stages.append(content[:size])
        content = content[size:]
    return stages


def delete(sql: Sql, subject: str) -> None:
    """Delete a query."""
    sql.run("DELETE FROM saved_queries WHERE id = ?", subject)


def require_language(query: SavedQuery, language: str) -> None:
    """Raise PRECONDITION unless a query is in `language`."""
    if query.language != language:
        raise MachineError(
            f"the query {query.name!r} is in {query.language.upper()}, not in {language.upper()}",
            kind=ErrorKind.PRECONDITION,
            remedy="open SQL on the page SQL; published calls take MQL",
        )


def checked_text(text: str, language: str) -> str:
    """Return the text of a query. INVALID if there is none, or if it is too long."""
    if language == MQL:
        SQL_TEXT.check(len(text) // 2, "the query")
    else:
        SQL_TEXT.check(len(text.encode("utf-8", "surrogatepass")), "the query")
    if not text.strip() or "\0" in text:
        raise MachineError("there is no query to save", kind=ErrorKind.INVALID, remedy="write a query without NUL")
    return text


def _record(row: Mapping[str, Any]) -> SavedQuery:
    return SavedQuery(
        row["id"],
        row["organization_id"],
        row["name"],
        row["language"],
        row["query"],
        moment_of(row["created"]),
        moment_of(row["updated"]),
    )


def _name_taken(name: str) -> MachineError:
    return MachineError(
        f"there is already a query called {name!r}", kind=ErrorKind.EXISTS, remedy="choose another name"
    )
