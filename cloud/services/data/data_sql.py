"""SQL queries on an organization's readings."""

from __future__ import annotations

from functools import partial

from cloud.domain.queries.gathering import gathered
from cloud.services.common.base import Service


class Queries(Service):
    """Readings as a table."""

    async def tabular_data_by_sql(self, organization_id: str, sql_query: str) -> list[bytes]:
        """Return the rows of a SELECT from the table `readings`, each as BSON."""
        run = partial(self.cloud.room.run, organization_id)
        gather = partial(gathered, self, self.cloud.blobs, run, organization_id)
        await self.read(lambda sql: None)  # a caller without the role starts no process
        return await self.cloud.queries.execute(organization_id, sql_query, gather)
