"""SQL queries on an organization's readings."""

from __future__ import annotations

from functools import partial

from cloud.domain.queries import fields
from cloud.domain.queries.gathering import gathered
from cloud.domain.queries.query import QueryAnswer, Report, unreported
from cloud.services.common.base import Service


class Queries(Service):
    """Readings as a table."""

    async def tabular_data_by_sql(self, organization_id: str, sql_query: str) -> list[bytes]:
        """Return the rows of a SELECT from the table `readings`, each as BSON."""
        return (await self._answer(organization_id, sql_query, unreported)).rows

    async def tabular_answer(self, organization_id: str, sql_query: str, report: Report = unreported) -> QueryAnswer:
        """Return the columns and rows of a SELECT from the table `readings`, and report its progress."""
        return await self._answer(organization_id, sql_query, report)

    async def tabular_fields(self, organization_id: str) -> list[tuple[str, str]]:
        """Return names and types of fields of readings, for completion: see `cloud.domain.queries.fields`."""
        return await self.read(lambda sql: fields.newest(sql, organization_id))

    async def _answer(self, organization_id: str, sql_query: str, report: Report) -> QueryAnswer:
        run = partial(self.cloud.room.run, organization_id)
        gather = partial(gathered, self, self.cloud.blobs, run, organization_id)
        await self.read(lambda sql: None)  # a caller without the role starts no process
        return await self.cloud.queries.execute(organization_id, sql_query, gather, report)
