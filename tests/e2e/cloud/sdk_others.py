"""Objects that clients of the SDK cannot create: a second organization, and a user who belongs to the first one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant
from cloud.domain.people import invites
from cloud.store.events import Events
from cloud.store.sql import Sql
from cloud.store.sqlite import SqliteStore
from cloud.values.times import now
from tests.e2e.cloud.process import CloudProcess

ANNA: Final = "anna@example.com"


async def others(running: CloudProcess, folder: Path) -> str:
    """Create them in the database of a running cloud in `folder`; Anna is an operator. Return the organization's id."""
    organization, key = running.facts["organization"], running.key[0]

    def work(sql: Sql) -> str:
        grant = Grant("operator", "organization", organization)
        asked = invites.create(sql, organization, ANNA, [grant], (key, "owner"), now(), mail=False)
        invites.accept(sql, invites.link(sql, asked), now())
        return create_owner(sql, "Second", now()).organization

    (database,) = (folder / "data").glob("*.db")
    async with SqliteStore(database, Events()).opened() as store:
        return await store.write(work)
