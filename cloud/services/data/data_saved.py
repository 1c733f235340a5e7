"""Saved queries of an organization."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from cloud.domain.organizations import saved_queries as saved
from cloud.domain.organizations.saved_queries import SavedQuery
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, operator
from cloud.domain.queries.mql.stages import translated
from cloud.domain.queries.statement import Invalid
from cloud.services.common.base import Service
from cloud.services.data import data_messages as m
from cloud.store.sql import Sql
from cloud.values.limits import SQL_TEXT
from schema import ErrorKind, MachineError

LISTED: Final = 100


def _message(query: SavedQuery) -> m.Query:
    names = query.id, query.organization_id, query.name
    return m.Query(*names, saved.stages_of(query), query.created, query.updated)


class SavedQueries(Service):
    """Queries that have a name."""

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id", inside=True))
    async def list_sql_queries(self, organization_id: str) -> list[SavedQuery]:
        """Return the saved SQL queries of an organization, ordered by name, the first LISTED."""
        return await self.read_checked(lambda sql: saved.saved_queries(sql, organization_id, saved.SQL, LISTED))

    @allow(operator(ObjectKind.QUERY, "id", inside=True))
    async def get_sql_query(self, id: str) -> SavedQuery:  # noqa: A002 - as in published calls
        """Return a saved SQL query."""

        def work(sql: Sql) -> SavedQuery:
            query = saved.saved_query(sql, id)
            saved.require_language(query, saved.SQL)
            return query

        return await self.read_checked(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_sql_query(self, organization_id: str, name: str, sql_query: str) -> str:
        """Save an SQL query and return its id."""
        return await self.change(lambda sql: saved.create(sql, organization_id, name, saved.SQL, sql_query, self.now()))

    @allow(operator(ObjectKind.QUERY, "id"))
    async def update_sql_query(self, id: str, name: str, sql_query: str) -> None:  # noqa: A002 - as in published calls
        """Change the name and the text of a saved SQL query; an empty one stays as it is."""
        await self.change(lambda sql: saved.update(sql, id, name, saved.SQL, sql_query, self.now()))

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_saved_query(self, organization_id: str, name: str, mql_binary: Sequence[bytes] = ()) -> str:
        """Save an aggregation and return its id."""
        text = await self._checked(mql_binary)
        return await self.change(lambda sql: saved.create(sql, organization_id, name, saved.MQL, text, self.now()))

    @allow(operator(ObjectKind.QUERY, "id"))
    async def update_saved_query(self, id: str, name: str = "", mql_binary: Sequence[bytes] = ()) -> None:  # noqa: A002 - field of the wire
        """Change the name and the stages of a saved aggregation; empty ones stay as they are."""
        text = await self._checked(mql_binary) if mql_binary else ""
        await self.change(lambda sql: saved.update(sql, id, name, saved.MQL, text, self.now()))

    @allow(operator(ObjectKind.QUERY, "id", inside=True))
    async def get_saved_query(self, id: str) -> m.Query:  # noqa: A002 - field of the wire
        """Return a saved aggregation. PRECONDITION if the query is in SQL: the page SQL shows it."""

        def work(sql: Sql) -> m.Query:
            query = saved.saved_query(sql, id)
            saved.require_language(query, saved.MQL)
            return _message(query)

        return await self.read_checked(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id", inside=True))
    async def list_saved_queries(self, organization_id: str, limit: int = 0) -> list[m.Query]:
        """Return the saved aggregations of an organization, ordered by name, at most LISTED."""
        most = min(limit, LISTED) if limit > 0 else LISTED
        return await self.read_checked(
            lambda sql: [_message(each) for each in saved.saved_queries(sql, organization_id, saved.MQL, most)]
        )

    async def _checked(self, stages: Sequence[bytes]) -> str:
        """Return the stages as they are stored. INVALID if they cannot be answered."""
        size = sum(map(len, stages))
        SQL_TEXT.check(size, "the query")
        try:
            await self.offload(size, partial(translated, list(stages)))
        except Invalid as invalid:
            message, remedy, _ = invalid.args
            raise MachineError(message, kind=ErrorKind.INVALID, remedy=remedy) from None
        return b"".join(stages).hex()

    @allow(operator(ObjectKind.QUERY, "id"))
    async def delete_saved_query(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a saved query, in any language."""
        await self.change(lambda sql: saved.delete(sql, id))
