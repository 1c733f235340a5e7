"""SQL queries on an organization's readings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from cloud.domain.data import readings
from cloud.domain.data.filters import DataFilter, Scope
from cloud.domain.data.pages import MAX_PAGE
from cloud.domain.data.readings import ReadingRecord
from cloud.domain.queries.query import Cells, cells
from cloud.services.common.base import Service
from cloud.store.sql import Sql


class Queries(Service):
    """Readings as a table."""

    async def tabular_data_by_sql(self, organization_id: str, sql_query: str) -> list[bytes]:
        """Return the rows of a SELECT from the table `readings`, each as BSON."""
        async with aclosing(self._table(organization_id)) as table:
            return await self.cloud.queries.execute(organization_id, sql_query, table)

    async def _table(self, organization: str) -> AsyncGenerator[list[Cells], None]:
        """Yield all readings of an organization in batches."""
        scope, last = Scope((organization,)), 0

        def work(sql: Sql) -> list[ReadingRecord]:
            return readings.arrived(sql, DataFilter(), scope, last, MAX_PAGE)

        while records := await self.read(work):
            last = records[-1].number
            yield await self.cloud.room.run(organization, partial(_cells, records))


def _cells(records: Sequence[ReadingRecord]) -> list[Cells]:
    return [cells(record) for record in records]
