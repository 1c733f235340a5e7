"""Saved queries of an organization."""

from __future__ import annotations

from typing import Final

from cloud.domain.organizations import saved_queries as saved
from cloud.domain.organizations.saved_queries import SavedQuery
from cloud.services.common.base import Service
from cloud.store.sql import Sql

LISTED: Final = 100


class SavedQueries(Service):
    """Queries that have a name."""

    async def list_sql_queries(self, organization_id: str) -> list[SavedQuery]:
        """Return the saved SQL queries of an organization, ordered by name, the first LISTED."""
        return await self.read(lambda sql: saved.saved_queries(sql, organization_id, saved.SQL, LISTED))

    async def get_sql_query(self, id: str) -> SavedQuery:  # noqa: A002 - as in published calls
        """Return a saved SQL query."""

        def work(sql: Sql) -> SavedQuery:
            query = saved.saved_query(sql, id)
            saved.require_language(query, saved.SQL)
            return query

        return await self.read(work)

    async def create_sql_query(self, organization_id: str, name: str, sql_query: str) -> str:
        """Save an SQL query and return its id."""
        return await self.write(lambda sql: saved.create(sql, organization_id, name, saved.SQL, sql_query, self.now()))

    async def update_sql_query(self, id: str, name: str, sql_query: str) -> None:  # noqa: A002 - as in published calls
        """Change the name and the text of a saved SQL query; an empty one stays as it is."""
        await self.write(lambda sql: saved.update(sql, id, name, saved.SQL, sql_query, self.now()))

    async def delete_saved_query(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a saved query, in any language."""
        await self.write(lambda sql: saved.delete(sql, id))
