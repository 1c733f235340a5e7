"""Saved views of the list of machines: filter, order and columns, for a person or for the organization."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql
from cloud.values.limits import FLEET_QUERY, FLEET_VIEWS
from cloud.values.names import checked_name, new_id
from cloud.values.times import stored


@dataclass(frozen=True, slots=True)
class SavedView:
    """A view; `owner` is the key to which it belongs, empty for the whole organization."""

    id: str
    organization_id: str
    owner: str
    name: str
    query: str


def save(sql: Sql, organization: str, owner: str, name: str, query: str, now: datetime) -> str:
    """Save a view, in place of one with the same owner and name; return its id. INVALID, EXHAUSTED."""
    FLEET_QUERY.check(len(query), "the view")
    name = checked_name(name, "a view")
    row = sql.row(
        "SELECT id FROM fleet_views WHERE organization_id = ? AND owner = ? AND name = ?", organization, owner, name
    )
    if row is not None:
        sql.run("UPDATE fleet_views SET query = ?, saved = ? WHERE id = ?", query, stored(now), row["id"])
        return str(row["id"])
    count = len(sql.rows("SELECT id FROM fleet_views WHERE organization_id = ? AND owner = ?", organization, owner))
    FLEET_VIEWS.check_count(count, "the key" if owner else "the organization")
    subject = new_id()
    sql.run(
        "INSERT INTO fleet_views (id, organization_id, owner, name, query, saved) VALUES (?, ?, ?, ?, ?, ?)",
        subject,
        organization,
        owner,
        name,
        query,
        stored(now),
    )
    return subject


def view(sql: Sql, subject: str) -> SavedView:
    """Return a view; NOT_FOUND."""
    row = sql.row("SELECT id, organization_id, owner, name, query FROM fleet_views WHERE id = ?", subject)
    if row is None:
        raise missing("saved view", subject)
    return SavedView(**row)


def views(sql: Sql, organization: str, owner: str) -> list[SavedView]:
    """Return the views of a key and those of its organization, in order of their names."""
    rows = sql.rows(
        "SELECT id, organization_id, owner, name, query FROM fleet_views "
        "WHERE organization_id = ? AND owner IN ('', ?) ORDER BY name, owner",
        organization,
        owner,
    )
    return [SavedView(**row) for row in rows]


def delete(sql: Sql, subject: str) -> None:
    """Delete a view."""
    sql.run("DELETE FROM fleet_views WHERE id = ?", subject)
