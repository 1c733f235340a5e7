"""Questions in SQL about an organization's readings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from cloud.data import readings
from cloud.data.filters import Scope, Wanted
from cloud.data.pages import MAX_PAGE
from cloud.data.query import Cells, cells
from cloud.data.readings import ReadingRecord
from cloud.services.base import Service
from cloud.store.sql import Sql


class Queries(Service):
    """Readings as a table."""

    async def tabular_data_by_sql(self, organization_id: str, sql_query: str) -> list[bytes]:
        """The rows of a SELECT from the table `readings`, each as BSON."""
        async with aclosing(self._table(organization_id)) as table:
            return await self.cloud.questions.ask(organization_id, sql_query, table)

    async def _table(self, organization: str) -> AsyncGenerator[list[Cells], None]:
        """All readings of an organization, some at a time."""
        scope, last = Scope((organization,)), 0

        def work(sql: Sql) -> list[ReadingRecord]:
            return readings.arrived(sql, Wanted(), scope, last, MAX_PAGE)

        while found := await self.read(work):
            last = found[-1].number
            yield await self.cloud.room.run(organization, partial(_cells, found))


def _cells(found: Sequence[ReadingRecord]) -> list[Cells]:
    return [cells(one) for one in found]
