"""Between the published messages of data and what the database keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from cloud.cursor import cursor, read_cursor
from cloud.data import files, labels
from cloud.data.files import FileRecord
from cloud.data.filters import Wanted
from cloud.data.pages import PAGE, Page
from cloud.data.sources import Source, last_segment
from cloud.services import data_messages as m
from cloud.store.sql import Sql
from schema.errors import ErrorKind, MachineError

MAX_IDS: Final = 10_000  # in one call


def wanted_of(given: m.Filter | None) -> Wanted:
    """What a filter asks for."""
    if given is None:
        return Wanted()
    tags, tagged = _tags(given.tags_filter)
    interval = given.interval or m.CaptureInterval()
    return Wanted(
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


def wanted_of_readings(given: m.DeleteTabularFilter | None) -> Wanted:
    """What a filter for deleting readings asks for."""
    if given is None:
        return Wanted()
    tags, tagged = _tags(given.tags_filter)
    return Wanted(
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
    """The page that a request asks for; the oldest data come first unless it says otherwise."""
    return Page(
        after=read_cursor(request.last) if request.last else None,
        limit=request.limit or PAGE,
        descending=request.sort_order is m.Order.DESCENDING,
    )


def last_of(found: Sequence[FileRecord]) -> str:
    """Where a page of files ends."""
    return cursor(found[-1].requested, found[-1].number) if found else ""


def ids_of(old: Iterable[m.BinaryID], new: Iterable[str]) -> list[str]:
    """The ids of files, however they are named; INVALID for none, or far too many."""
    found = list(dict.fromkeys([*new, *(one.file_id for one in old)]))
    if not found:
        raise MachineError("no file is named", kind=ErrorKind.INVALID, remedy="give at least one binary_data_id")
    if len(found) > MAX_IDS:
        raise MachineError(f"{len(found)} files in one call", kind=ErrorKind.INVALID, remedy=f"name at most {MAX_IDS}")
    return found


def id_of(old: m.BinaryID | None, new: str) -> str:
    """The id of one file, however it is named; the new way wins. INVALID for none."""
    return ids_of([old] if old is not None and not new else [], [new] if new else [])[0]


def metadata_of(source: Source, tags: Iterable[str], mime: str = "") -> m.CaptureMetadata:
    """Where data came from."""
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
    """All that is known of files. `base` is the cloud's own address."""
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
