"""SQL queries on an organization's readings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from cloud.domain.data import sources
from cloud.domain.data.filters import DataFilter, Scope
from cloud.domain.data.pages import MAX_PAGE, Page, Position
from cloud.domain.data.readings import ReadingRecord, position
from cloud.domain.queries.query import Cells, cells
from cloud.services.common.base import Service


class Queries(Service):
    """Readings as a table."""

    async def tabular_data_by_sql(self, organization_id: str, sql_query: str) -> list[bytes]:
        """Return the rows of a SELECT from the table `readings`, each as BSON."""
        async with aclosing(self._table(organization_id)) as table:
            return await self.cloud.queries.execute(organization_id, sql_query, table)

    async def _table(self, organization: str) -> AsyncGenerator[list[Cells], None]:
        """Yield all readings of an organization in batches, one source after the other."""
        stored = self.cloud.readings(self, lambda sql: Scope((organization,)), organization)
        for source in await self.read(lambda sql: sources.of_organization(sql, organization)):
            own, more = DataFilter(source=source), True
            after: Position | None = None
            while more:
                records = await stored.page(own, Page(after, MAX_PAGE))
                if records:
                    yield await self.cloud.room.run(organization, partial(_cells, records))
                more = len(records) == MAX_PAGE
                after = position(records[-1]) if more else None


def _cells(records: Sequence[ReadingRecord]) -> list[Cells]:
    return [cells(record) for record in records]
