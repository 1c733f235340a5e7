"""First start: creates an organization with a location, and an owner key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.organizations.tenants import create_location, create_organization
from cloud.store.sql import Sql


@dataclass(frozen=True, slots=True)
class FirstKey:
    """The created ids and key, printed once. The key itself is not stored anywhere."""

    organization: str
    location: str
    id: str
    key: str


def create_owner(sql: Sql, name: str, now: datetime) -> FirstKey:
    """Create an organization, a location of the same name, and an owner key."""
    organization = create_organization(sql, name, now)
    location = create_location(sql, organization, name, "", now)
    grant = Grant("owner", "organization", organization)
    subject, key = create_key(sql, organization, "owner", [grant], now)
    return FirstKey(organization, location, subject, key)


def first_start(sql: Sql, name: str, now: datetime) -> FirstKey | None:
    """Call `create_owner` if the database is empty; otherwise return None."""
    if sql.row("SELECT id FROM organizations") is not None:
        return None
    return create_owner(sql, name, now)


def first_organization(sql: Sql) -> str:
    """Return the organization created at the first start, whose members run the cloud; empty if none."""
    row = sql.row("SELECT id FROM organizations ORDER BY created, id LIMIT 1")
    return "" if row is None else str(row["id"])
