"""Published calls for readings: query, export, delete."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cloud.domain.data import readings, retention
from cloud.domain.data.files import Total
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.pages import MAX_PAGE, Page
from cloud.domain.data.readings import ReadingRecord
from cloud.domain.data.segments import deleting
from cloud.domain.data.segments.plotting import captured
from cloud.domain.data.segments.reading import Readings
from cloud.domain.data.series import POINTS, Plotted, check_series
from cloud.domain.data.sources import canonical, last_segment
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.data_scope import scope_of
from cloud.domain.permissions.rules import FILTERED, allow, operator, owner
from cloud.services.common.base import Service
from cloud.services.data import data_messages as m
from cloud.services.data.data_words import filter_of, metadata_of, page_of, readings_filter_of
from cloud.store.sql import Sql
from cloud.values.cursor import cursor


class Tabular(Service):
    """Readings that machines have captured."""

    @allow(FILTERED)
    async def tabular_data_by_filter(
        self,
        data_request: m.DataRequest | None = None,
        count_only: bool = False,
        include_internal_data: bool = False,
    ) -> m.TabularPage:
        """Return a page of readings. There are no internal data.

        The count and the size are those of the page; with `count_only`, of all matching readings, which are read.
        """
        request = data_request or m.DataRequest()
        data_filter = filter_of(request.filter)

        stored_readings = await self._readings()
        if count_only:
            records, count = [], await stored_readings.total(data_filter)
        else:
            records = await stored_readings.page(data_filter, page_of(request))
            count = Total(len(records), _size(records))
        index: dict[int, int] = {}
        for record in records:
            index.setdefault(record.source_number, len(index))
        metadata = {record.source_number: metadata_of(record.source, record.tags) for record in records}
        data = await self.offload(
            _size(records),
            lambda: [
                m.TabularData(record.data, index[record.source_number], record.requested, record.received)
                for record in records
            ],
        )
        last = cursor(records[-1].requested, records[-1].number) if records else ""
        return m.TabularPage([metadata[number] for number in index], data, count.count, last, count.size)

    @allow(operator(ObjectKind.PART, "part_id"))
    async def get_latest_tabular_data(
        self,
        part_id: str,
        resource_name: str,
        method_name: str,
        resource_subtype: str = "",
        additional_parameters: Mapping[str, Any] | None = None,
    ) -> m.LatestTabularData:
        """Return the newest reading of a method; an empty message if there is none."""
        data_filter = _method_filter(part_id, resource_name, resource_subtype, method_name, None, additional_parameters)
        newest = Page(limit=1, descending=True)
        records = await (await self._readings()).page(data_filter, newest)
        if not records:
            return m.LatestTabularData()
        return m.LatestTabularData(records[0].requested, records[0].synced, records[0].data)

    @allow(operator(ObjectKind.PART, "part_id"))
    async def export_tabular_data(
        self,
        part_id: str,
        resource_name: str,
        resource_subtype: str,
        method_name: str,
        interval: m.CaptureInterval | None = None,
        additional_parameters: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[m.TabularDataPoint]:
        """Yield all readings of a method, oldest first."""
        data_filter = _method_filter(
            part_id, resource_name, resource_subtype, method_name, interval, additional_parameters
        )
        after: tuple[int, int] | None = None
        while records := await self.page_of_readings(data_filter, after):
            points = await self.offload(_size(records), partial(_points, records, resource_subtype))
            for point in points:
                yield point
            after = readings.position(records[-1])

    @allow(FILTERED)
    async def page_of_readings(
        self, data_filter: DataFilter, after: tuple[int, int] | None = None
    ) -> list[ReadingRecord]:
        """Return the readings for an export after a position, oldest first; empty at the end. Not an RPC."""
        return await (await self._readings()).page(data_filter, Page(after, MAX_PAGE))

    @allow(FILTERED)
    async def tabular_series(
        self,
        filter: m.Filter,  # noqa: A002 - as in other calls
        fields: Sequence[str] = (),
        start: datetime | None = None,
        end: datetime | None = None,
        points: int = POINTS,
    ) -> Plotted | None:
        """Return the numbers of readings in at most `points` buckets of time, for plots; None without readings.

        Not an RPC. The range is that of the filter, and within it from `start` to before `end`; see `captured` for its
        defaults. `fields` are paths, such as `readings.temperature`; without them, all fields are read. The answer says
        if it is made of a sample of the readings, and which sources and fields were left out: there are at most
        MAX_SOURCES sources and MAX_FIELDS fields. INVALID if the range is empty, or there are too many points or names.
        """
        chosen = filter_of(filter)
        starts = [moment for moment in (chosen.start, start) if moment is not None]
        ends = [moment for moment in (chosen.end, end) if moment is not None]
        chosen = replace(chosen, start=max(starts, default=None), end=min(ends, default=None))
        check_series(chosen, fields, points)
        result = await captured(await self._readings(), chosen, points)
        if result is None:
            return None
        return await self.offload(result.size, lambda: result.parsed(fields))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def delete_tabular_data(
        self,
        organization_id: str,
        delete_older_than_days: int = 0,
        filter: m.DeleteTabularFilter | None = None,  # noqa: A002 - field of the wire
    ) -> int:
        """Delete the readings of an organization captured more than `delete_older_than_days` days ago; 0 deletes all.
        Return their number. Others can write in the meantime: a call that fails may have deleted some of them.
        """
        before = self.now() - timedelta(days=min(delete_older_than_days, retention.MAX_DAYS))
        chosen = replace(readings_filter_of(filter), end=before if delete_older_than_days else None)
        deleted, scope = 0, DataScope((organization_id,))
        files = self.cloud.segment_files(organization_id)
        while True:  # until nothing has moved from rows to segments in the meantime
            number = await self.change(lambda sql: readings.delete(sql, chosen, scope))
            number = number or await deleting.delete(self, files, chosen, organization_id, self.now)
            if not number:
                return deleted
            deleted += number

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def retention(self, organization_id: str) -> int:
        """Return the retention period of data in days; 0 means forever. Not an RPC; used by pages."""
        return await self.read(lambda sql: retention.days(sql, organization_id))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def set_retention(self, organization_id: str, days: int) -> None:
        """Set the retention period in days from arrival; 0 means forever. Not an RPC; used by pages."""
        await self.change(lambda sql: retention.set_days(sql, organization_id, days))

    async def _readings(self) -> Readings:
        return self.cloud.readings(self, self._scope, await self.organization())

    def _scope(self, sql: Sql) -> DataScope:
        return scope_of(sql, self.author, Role.OPERATOR)


def _method_filter(
    part: str,
    component: str,
    component_type: str,
    method: str,
    interval: m.CaptureInterval | None,
    parameters: Mapping[str, Any] | None,
) -> DataFilter:
    when = interval or m.CaptureInterval()
    return DataFilter(
        part=part,
        component=component,
        component_type=last_segment(component_type),
        method=method,
        start=when.start,
        end=when.end,
        parameters=canonical(parameters) if parameters else None,
    )


def _size(records: Sequence[ReadingRecord]) -> int:
    return sum(len(record.text) for record in records)


def _points(records: Sequence[ReadingRecord], resource_type: str) -> list[m.TabularDataPoint]:
    return [_point(record, resource_type) for record in records]


def _point(record: ReadingRecord, resource_type: str) -> m.TabularDataPoint:
    source = record.source
    return m.TabularDataPoint(
        part_id=source.part_id,
        resource_name=source.component,
        resource_subtype=resource_type or source.component_type,
        method_name=source.method,
        time_captured=record.requested,
        organization_id=source.organization_id,
        location_id=source.location_id,
        robot_name=source.machine,
        robot_id=source.machine_id,
        part_name=source.part,
        method_parameters=json.loads(source.parameters),
        tags=list(record.tags),
        payload=record.data,
    )
