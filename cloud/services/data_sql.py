"""Questions in SQL about an organization's readings."""

from __future__ import annotations

from typing import Final

import trio

from cloud.data import readings
from cloud.data.bson import encode
from cloud.data.filters import Scope, Wanted
from cloud.data.pages import MAX_PAGE
from cloud.data.query import Question
from cloud.services.base import Service

AT_ONCE: Final = trio.CapacityLimiter(2)  # questions, each with a copy of an organization's readings in memory


class Queries(Service):
    """Readings as a table."""

    async def tabular_data_by_sql(self, organization_id: str, sql_query: str) -> list[bytes]:
        """The rows of a SELECT from the table `readings`, each as BSON."""
        scope = Scope((organization_id,))
        async with AT_ONCE, Question().opened() as question:
            last = 0
            while found := await self.read(
                lambda sql, after=last: readings.arrived(sql, Wanted(), scope, after, MAX_PAGE)  # type: ignore[misc]
            ):
                await question.add(found)
                last = found[-1].number
            return [encode(row) for row in await question.ask(sql_query)]
