"""What the data services take and answer: one dataclass for each published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

# ---- uploads


class DataType(IntEnum):
    """What an upload holds."""

    UNSPECIFIED = 0
    BINARY_SENSOR = 1
    TABULAR_SENSOR = 2
    FILE = 3


class MimeType(IntEnum):
    """The old way to name a type of content."""

    UNSPECIFIED = 0
    IMAGE_JPEG = 1
    IMAGE_PNG = 2
    APPLICATION_PCD = 3
    VIDEO_MP4 = 4


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """A box in a picture; edges as fractions of its width and height."""

    id: str = ""
    label: str = ""
    x_min_normalized: float = 0.0
    y_min_normalized: float = 0.0
    x_max_normalized: float = 0.0
    y_max_normalized: float = 0.0
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Classification:
    """What a whole picture shows."""

    id: str = ""
    label: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """Labels of a picture."""

    bboxes: list[BoundingBox] = field(default_factory=list)
    classifications: list[Classification] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UploadMetadata:
    """Where an upload comes from and what it is."""

    part_id: str = ""
    component_type: str = ""
    component_name: str = ""
    method_name: str = ""
    type: DataType = DataType.UNSPECIFIED
    method_parameters: Mapping[str, Any] = field(default_factory=dict)
    file_name: str = ""
    file_extension: str = ""
    file_create_time: datetime | None = None
    file_modify_time: datetime | None = None
    tags: list[str] = field(default_factory=list)
    dataset_ids: list[str] = field(default_factory=list)
    mime_type: str = ""


@dataclass(frozen=True, slots=True)
class SensorMetadata:
    """When a piece was captured."""

    time_requested: datetime | None = None
    time_received: datetime | None = None
    mime_type: MimeType = MimeType.UNSPECIFIED
    annotations: Annotations | None = None


@dataclass(frozen=True, slots=True)
class SensorData:
    """One captured piece: a reading or the content of a file."""

    metadata: SensorMetadata | None = None
    struct: Mapping[str, Any] | None = None
    binary: bytes | None = None


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What became of an upload."""

    file_id: str
    binary_data_id: str


# ---- queries


class Order(IntEnum):
    """In which order data come: by the time when they were captured."""

    UNSPECIFIED = 0
    DESCENDING = 1
    ASCENDING = 2


class TagsFilterType(IntEnum):
    """What a filter says of tags."""

    UNSPECIFIED = 0
    MATCH_BY_OR = 1
    TAGGED = 2
    UNTAGGED = 3


@dataclass(frozen=True, slots=True)
class TagsFilter:
    """Which tags."""

    type: TagsFilterType = TagsFilterType.UNSPECIFIED
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CaptureInterval:
    """When captured: from `start` on and before `end`."""

    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which data: all of it holds; of several values one."""

    component_name: str = ""
    component_type: str = ""
    method: str = ""
    robot_name: str = ""
    robot_id: str = ""
    part_name: str = ""
    part_id: str = ""
    location_ids: list[str] = field(default_factory=list)
    organization_ids: list[str] = field(default_factory=list)
    mime_type: list[str] = field(default_factory=list)
    interval: CaptureInterval | None = None
    tags_filter: TagsFilter | None = None
    bbox_labels: list[str] = field(default_factory=list)
    dataset_id: str = ""


@dataclass(frozen=True, slots=True)
class DeleteTabularFilter:
    """Which readings."""

    location_ids: list[str] = field(default_factory=list)
    robot_id: str = ""
    part_id: str = ""
    component_type: str = ""
    component_name: str = ""
    method: str = ""
    tags_filter: TagsFilter | None = None


@dataclass(frozen=True, slots=True)
class DataRequest:
    """A page of data: `last` is what the page before said."""

    filter: Filter = field(default_factory=Filter)
    limit: int = 0
    last: str = ""
    sort_order: Order = Order.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class BinaryID:
    """The old way to name a file; only `file_id` counts."""

    file_id: str = ""
    organization_id: str = ""
    location_id: str = ""


# ---- answers


@dataclass(frozen=True, slots=True)
class CaptureMetadata:
    """Where data came from, named as it was then."""

    organization_id: str = ""
    location_id: str = ""
    robot_name: str = ""
    robot_id: str = ""
    part_name: str = ""
    part_id: str = ""
    component_type: str = ""
    component_name: str = ""
    method_name: str = ""
    tags: list[str] = field(default_factory=list)
    mime_type: str = ""


@dataclass(frozen=True, slots=True)
class TabularData:
    """One reading; `metadata_index` tells which of the answer's metadata are its own."""

    data: Mapping[str, Any]
    metadata_index: int
    time_requested: datetime
    time_received: datetime


@dataclass(frozen=True, slots=True)
class TabularPage:
    """Readings; without any, the last page was the one before."""

    metadata: list[CaptureMetadata]
    data: list[TabularData]
    count: int
    last: str
    total_size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LatestTabularData:
    """The newest reading of a method; empty if there is none."""

    time_captured: datetime | None = None
    time_synced: datetime | None = None
    payload: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TabularDataPoint:
    """One reading with where it came from."""

    part_id: str
    resource_name: str
    resource_subtype: str
    method_name: str
    time_captured: datetime
    organization_id: str
    location_id: str
    robot_name: str
    robot_id: str
    part_name: str
    method_parameters: Mapping[str, Any]
    tags: list[str]
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BinaryMetadata:
    """What is known of a file."""

    id: str
    capture_metadata: CaptureMetadata
    time_requested: datetime
    time_received: datetime
    file_name: str
    file_ext: str
    uri: str
    annotations: Annotations
    dataset_ids: list[str]
    binary_data_id: str
    file_size_bytes: int


@dataclass(frozen=True, slots=True)
class BinaryData:
    """A file, with its content where that was asked for."""

    binary: bytes
    metadata: BinaryMetadata


@dataclass(frozen=True, slots=True)
class BinaryPage:
    """Files; without any, the last page was the one before."""

    data: list[BinaryData]
    count: int
    last: str
    total_size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BinaryByIDs:
    """The files that were asked for."""

    data: list[BinaryData]
    count: int


@dataclass(frozen=True, slots=True)
class SignedURL:
    """A link that opens one file without a key."""

    signed_url: str
    expires_at: datetime


class DatasetType(IntEnum):
    """What a dataset holds."""

    BINARY_DATA = 0
    SEQUENCE_DATA = 1


@dataclass(frozen=True, slots=True)
class Dataset:
    """A named collection of files."""

    id: str
    name: str
    organization_id: str
    time_created: datetime
    type: DatasetType = DatasetType.BINARY_DATA
