"""SQL queries on an organization's readings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cloud.domain.organizations import saved_queries as saved
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, operator
from cloud.domain.queries import fields
from cloud.domain.queries.gathering import gathered
from cloud.domain.queries.query import QueryAnswer, Report, unreported
from cloud.services.common.base import Service
from cloud.services.data import data_messages as m
from schema import ErrorKind, MachineError


class Queries(Service):
    """Readings as a table."""

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def tabular_data_by_sql(self, organization_id: str, sql_query: str) -> list[bytes]:
        """Return the rows of a SELECT from the table `readings`, each as BSON."""
        return (await self._answer(organization_id, sql_query, unreported)).rows

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def tabular_answer(self, organization_id: str, sql_query: str, report: Report = unreported) -> QueryAnswer:
        """Return the columns and rows of a SELECT from the table `readings`, and report its progress."""
        return await self._answer(organization_id, sql_query, report)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def tabular_data_by_mql(
        self,
        organization_id: str,
        mql_binary: Sequence[bytes] = (),
        use_recent_data: bool = False,  # recent and older readings are in one table
        data_source: m.TabularDataSource | None = None,
        query_prefix_name: str = "",
    ) -> list[bytes]:
        """Return the documents of an aggregation of readings, each as BSON; stages of a saved query are before it."""
        if data_source is not None and data_source.type is m.TabularDataSourceType.PIPELINE_SINK:
            raise MachineError("this cloud has no data pipelines", kind=ErrorKind.UNSUPPORTED)
        stages = list(mql_binary)
        if query_prefix_name:
            prefix = await self.read(lambda sql: saved.of_name(sql, organization_id, query_prefix_name))
            stages = [*saved.stages_of(prefix), *stages]
        return (await self._answer(organization_id, stages, unreported)).rows

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def tabular_fields(self, organization_id: str) -> list[tuple[str, str]]:
        """Return names and types of fields of readings, for completion: see `cloud.domain.queries.fields`."""
        return await self.read(lambda sql: fields.newest(sql, organization_id))

    async def _answer(self, organization_id: str, query: str | Sequence[bytes], report: Report) -> QueryAnswer:
        run = partial(self.cloud.room.run, organization_id)
        gather = partial(gathered, self, self.cloud.blobs, run, organization_id)
        await self.read(lambda sql: None)  # a caller without the role starts no process
        return await self.cloud.queries.execute(organization_id, query, gather, report)
