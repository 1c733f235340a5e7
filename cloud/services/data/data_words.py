"""Conversion between the published data messages and the records of the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from cloud.domain.data import files, labels
from cloud.domain.data.files import FileRecord
from cloud.domain.data.filters import DataFilter
from cloud.domain.data.pages import PAGE, Page
from cloud.domain.data.sources import Source, last_segment
from cloud.services.data import data_messages as m
from cloud.store.sql import Sql
from cloud.values.cursor import cursor, read_cursor
from schema.errors import ErrorKind, MachineError

MAX_IDS: Final = 10_000  # ids in one call


def wanted_of(given: m.Filter | None) -> DataFilter:
    """Convert a filter."""
    if given is None:
        return DataFilter()
    tags, tagged = _tags(given.tags_filter)
    interval = given.interval or m.CaptureInterval()
    return DataFilter(
        organizations=tuple(given.organization_ids),
        locations=tuple(given.location_ids),
        machine=given.robot_id,
        machine_name=given.robot_name,
        part=given.part_id,
        part_name=given.part_name,
        component_type=last_segment(given.component_type),
        component=given.component_name,
        method=given.method,
        mime=tuple(one.lower() for one in given.mime_type),
        start=interval.start,
        end=interval.end,
        tags=tags,
        tagged=tagged,
        labels=tuple(given.bbox_labels),
        dataset=given.dataset_id,
    )


def wanted_of_readings(given: m.DeleteTabularFilter | None) -> DataFilter:
    """Convert a filter for deleting readings."""
    if given is None:
        return DataFilter()
    tags, tagged = _tags(given.tags_filter)
    return DataFilter(
        locations=tuple(given.location_ids),
        machine=given.robot_id,
        part=given.part_id,
        component_type=last_segment(given.component_type),
        component=given.component_name,
        method=given.method,
        tags=tags,
        tagged=tagged,
    )


def _tags(given: m.TagsFilter | None) -> tuple[tuple[str, ...], bool | None]:
    if given is None:
        return (), None
    if given.type in (m.TagsFilterType.TAGGED, m.TagsFilterType.UNTAGGED):
        return (), given.type is m.TagsFilterType.TAGGED
    return tuple(given.tags), None


def page_of(request: m.DataRequest) -> Page:
    """Return the requested page; the oldest data come first by default."""
    return Page(
        after=read_cursor(request.last) if request.last else None,
        limit=request.limit or PAGE,
        descending=request.sort_order is m.Order.DESCENDING,
    )


def last_of(found: Sequence[FileRecord]) -> str:
    """Return the cursor at the end of a page of files; "" for an empty page."""
    return cursor(found[-1].requested, found[-1].number) if found else ""


def ids_of(old: Iterable[m.BinaryID], new: Iterable[str]) -> list[str]:
    """Return the distinct file ids of both forms; INVALID if there are none or more than MAX_IDS."""
    found = list(dict.fromkeys([*new, *(one.file_id for one in old)]))
    if not found:
        raise MachineError("no file is named", kind=ErrorKind.INVALID, remedy="give at least one binary_data_id")
    if len(found) > MAX_IDS:
        raise MachineError(f"{len(found)} files in one call", kind=ErrorKind.INVALID, remedy=f"name at most {MAX_IDS}")
    return found


def id_of(old: m.BinaryID | None, new: str) -> str:
    """Return the file id of either form, preferring `new`; INVALID if there is none."""
    return ids_of([old] if old is not None and not new else [], [new] if new else [])[0]


def metadata_of(source: Source, tags: Iterable[str], mime: str = "") -> m.CaptureMetadata:
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


def described(sql: Sql, found: Sequence[FileRecord], base: str) -> list[m.BinaryMetadata]:
    """Return the metadata of files. `base` is the base URL of the cloud."""
    subjects = [one.id for one in found]
    tags, sets = files.tags_of(sql, subjects), files.datasets_of(sql, subjects)
    marks = labels.of_files(sql, subjects)
    return [
        m.BinaryMetadata(
            id=one.id,
            capture_metadata=metadata_of(one.source, tags[one.id], one.mime),
            time_requested=one.requested,
            time_received=one.received,
            file_name=one.name,
            file_ext=one.extension,
            uri=f"{base}/files/{one.id}",
            annotations=_annotations(marks[one.id]),
            dataset_ids=sets[one.id],
            binary_data_id=one.id,
            file_size_bytes=one.size,
        )
        for one in found
    ]


def _annotations(found: Iterable[labels.Label]) -> m.Annotations:
    boxes, whole = [], []
    for one in found:
        if one.edges is None:
            whole.append(m.Classification(one.id, one.label, one.confidence))
        else:
            e = one.edges
            boxes.append(m.BoundingBox(one.id, one.label, e.x_min, e.y_min, e.x_max, e.y_max, one.confidence))
    return m.Annotations(boxes, whole)
