"""The first start: an organization with a location, and the key of its owner."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloud.keys import Grant, create_key
from cloud.store.sql import Sql
from cloud.tenants import create_location, create_organization


@dataclass(frozen=True, slots=True)
class FirstKey:
    """What is printed once. `key` is kept nowhere."""

    organization: str
    location: str
    id: str
    key: str


def create_owner(sql: Sql, name: str, now: datetime) -> FirstKey:
    """A new organization with a location called after it, and an owner's key."""
    organization = create_organization(sql, name, now)
    location = create_location(sql, organization, name, "", now)
    grant = Grant("owner", "organization", organization)
    subject, key = create_key(sql, organization, "owner", [grant], now)
    return FirstKey(organization, location, subject, key)


def first_start(sql: Sql, name: str, now: datetime) -> FirstKey | None:
    """What `create_owner` makes in an empty database; None if it is not empty."""
    if sql.row("SELECT id FROM organizations") is not None:
        return None
    return create_owner(sql, name, now)
