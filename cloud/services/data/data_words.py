"""Conversion between the published data messages and the records of the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from cloud.domain.data import files, labels
from cloud.domain.data.files import FileRecord
from cloud.domain.data.filters import DataFilter
from cloud.domain.data.pages import PAGE, Page
from cloud.domain.data.sources import DataSource, last_segment
from cloud.services.data import data_messages as m
from cloud.store.sql import Sql
from cloud.values.cursor import cursor, read_cursor
from schema import ErrorKind, MachineError

MAX_IDS: Final = 10_000  # ids in one call


def filter_of(message: m.Filter | None) -> DataFilter:
    """Convert a filter."""
    if message is None:
        return DataFilter()
    tags, tagged = _tags(message.tags_filter)
    interval = message.interval or m.CaptureInterval()
    return DataFilter(
        organizations=tuple(message.organization_ids),
        locations=tuple(message.location_ids),
        machine=message.robot_id,
        machine_name=message.robot_name,
        part=message.part_id,
        part_name=message.part_name,
        component_type=last_segment(message.component_type),
        component=message.component_name,
        method=message.method,
        mime=tuple(mime.lower() for mime in message.mime_type),
        start=interval.start,
        end=interval.end,
        tags=tags,
        tagged=tagged,
        labels=tuple(message.bbox_labels),
        dataset=message.dataset_id,
    )


def readings_filter_of(message: m.DeleteTabularFilter | None) -> DataFilter:
    """Convert a filter for deleting readings."""
    if message is None:
        return DataFilter()
    tags, tagged = _tags(message.tags_filter)
    return DataFilter(
        locations=tuple(message.location_ids),
        machine=message.robot_id,
        part=message.part_id,
        component_type=last_segment(message.component_type),
        component=message.component_name,
        method=message.method,
        tags=tags,
        tagged=tagged,
    )


def _tags(tags_filter: m.TagsFilter | None) -> tuple[tuple[str, ...], bool | None]:
    if tags_filter is None:
        return (), None
    if tags_filter.type in (m.TagsFilterType.TAGGED, m.TagsFilterType.UNTAGGED):
        return (), tags_filter.type is m.TagsFilterType.TAGGED
    return tuple(tags_filter.tags), None


def page_of(request: m.DataRequest) -> Page:
    """Return the requested page; the oldest data come first by default."""
    return Page(
        after=read_cursor(request.last) if request.last else None,
        limit=request.limit or PAGE,
        descending=request.sort_order is m.Order.DESCENDING,
    )


def last_of(records: Sequence[FileRecord]) -> str:
    """Return the cursor at the end of a page of files; "" for an empty page."""
    return cursor(records[-1].requested, records[-1].number) if records else ""


def ids_of(old: Iterable[m.BinaryID], new: Iterable[str]) -> list[str]:
    """Return the distinct file ids of both forms; INVALID if there are none or more than MAX_IDS."""
    ids = list(dict.fromkeys([*new, *(binary_id.file_id for binary_id in old)]))
    if not ids:
        raise MachineError("the call names no file", kind=ErrorKind.INVALID, remedy="pass at least one binary_data_id")
    if len(ids) > MAX_IDS:
        raise MachineError(f"the call names {len(ids)} files", kind=ErrorKind.INVALID, remedy=f"name at most {MAX_IDS}")
    return ids


def id_of(old: m.BinaryID | None, new: str) -> str:
    """Return the file id of either form, preferring `new`; INVALID if there is none."""
    return ids_of([old] if old is not None and not new else [], [new] if new else [])[0]


def metadata_of(source: DataSource, tags: Iterable[str], mime: str = "") -> m.CaptureMetadata:
    """Return the origin of data as a message."""
    return m.CaptureMetadata(
        organization_id=source.organization_id,
        location_id=source.location_id,
        robot_name=source.machine,
        robot_id=source.machine_id,
        part_name=source.part,
        part_id=source.part_id,
        component_type=source.component_type,
        component_name=source.component,
        method_name=source.method,
        tags=list(tags),
        mime_type=mime,
    )


def described(sql: Sql, records: Sequence[FileRecord], base: str) -> list[m.BinaryMetadata]:
    """Return the metadata of files. `base` is the base URL of the cloud."""
    subjects = [record.id for record in records]
    tags, sets = files.tags_of(sql, subjects), files.datasets_of(sql, subjects)
    marks = labels.of_files(sql, subjects)
    return [
        m.BinaryMetadata(
            id=record.id,
            capture_metadata=metadata_of(record.source, tags[record.id], record.mime),
            time_requested=record.requested,
            time_received=record.received,
            file_name=record.name,
            file_ext=record.extension,
            uri=f"{base}/files/{record.id}",
            annotations=_annotations(marks[record.id]),
            dataset_ids=sets[record.id],
            binary_data_id=record.id,
            file_size_bytes=record.size,
        )
        for record in records
    ]


def _annotations(marks: Iterable[labels.Label]) -> m.Annotations:
    boxes, whole = [], []
    for mark in marks:
        if mark.edges is None:
            whole.append(m.Classification(mark.id, mark.label, mark.confidence))
        else:
            e = mark.edges
            boxes.append(m.BoundingBox(mark.id, mark.label, e.x_min, e.y_min, e.x_max, e.y_max, mark.confidence))
    return m.Annotations(boxes, whole)
