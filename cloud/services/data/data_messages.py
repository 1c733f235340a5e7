"""Request and response messages of the data services: one class for each published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any

from msgspec import Struct

# ---- uploads


class DataType(IntEnum):
    """Content type of an upload."""

    UNSPECIFIED = 0
    BINARY_SENSOR = 1
    TABULAR_SENSOR = 2
    FILE = 3


class MimeType(IntEnum):
    """Type of content, in the older form."""

    UNSPECIFIED = 0
    IMAGE_JPEG = 1
    IMAGE_PNG = 2
    APPLICATION_PCD = 3
    VIDEO_MP4 = 4


class BoundingBox(Struct, frozen=True):
    """A box in a picture, with edges as fractions of its width and height."""

    id: str = ""
    label: str = ""
    x_min_normalized: float = 0.0
    y_min_normalized: float = 0.0
    x_max_normalized: float = 0.0
    y_max_normalized: float = 0.0
    confidence: float | None = None


class Classification(Struct, frozen=True):
    """A label of a whole picture."""

    id: str = ""
    label: str = ""
    confidence: float | None = None


class Annotations(Struct, frozen=True):
    """Labels of a picture."""

    bboxes: list[BoundingBox] = []
    classifications: list[Classification] = []


class UploadMetadata(Struct, frozen=True):
    """Origin and properties of an upload."""

    part_id: str = ""
    component_type: str = ""
    component_name: str = ""
    method_name: str = ""
    type: DataType = DataType.UNSPECIFIED
    method_parameters: Mapping[str, Any] = {}
    file_name: str = ""
    file_extension: str = ""
    file_create_time: datetime | None = None
    file_modify_time: datetime | None = None
    tags: list[str] = []
    dataset_ids: list[str] = []
    mime_type: str = ""


class SensorMetadata(Struct, frozen=True):
    """Times, type and labels of a captured item."""

    time_requested: datetime | None = None
    time_received: datetime | None = None
    mime_type: MimeType = MimeType.UNSPECIFIED
    annotations: Annotations | None = None


class SensorData(Struct, frozen=True):
    """A captured item: a reading or the content of a file."""

    metadata: SensorMetadata | None = None
    struct: Mapping[str, Any] | None = None
    binary: bytes | None = None


class Uploaded(Struct, frozen=True):
    """The ids of an upload."""

    file_id: str
    binary_data_id: str


# ---- queries


class Order(IntEnum):
    """Order of data by capture time."""

    UNSPECIFIED = 0
    DESCENDING = 1
    ASCENDING = 2


class TagsFilterType(IntEnum):
    """Kind of a tags filter."""

    UNSPECIFIED = 0
    MATCH_BY_OR = 1
    TAGGED = 2
    UNTAGGED = 3


class TagsFilter(Struct, frozen=True):
    """A condition on tags."""

    type: TagsFilterType = TagsFilterType.UNSPECIFIED
    tags: list[str] = []


class CaptureInterval(Struct, frozen=True):
    """A range of capture times: `start` is included, `end` is not."""

    start: datetime | None = None
    end: datetime | None = None


class Filter(Struct, frozen=True):
    """A filter of data: all conditions must hold; in a list, any value may match."""

    component_name: str = ""
    component_type: str = ""
    method: str = ""
    robot_name: str = ""
    robot_id: str = ""
    part_name: str = ""
    part_id: str = ""
    location_ids: list[str] = []
    organization_ids: list[str] = []
    mime_type: list[str] = []
    interval: CaptureInterval | None = None
    tags_filter: TagsFilter | None = None
    bbox_labels: list[str] = []
    dataset_id: str = ""


class DeleteTabularFilter(Struct, frozen=True):
    """A filter of readings to delete."""

    location_ids: list[str] = []
    robot_id: str = ""
    part_id: str = ""
    component_type: str = ""
    component_name: str = ""
    method: str = ""
    tags_filter: TagsFilter | None = None


class DataRequest(Struct, frozen=True):
    """A request for a page of data: `last` is the cursor that the previous page returned."""

    filter: Filter = Filter()
    limit: int = 0
    last: str = ""
    sort_order: Order = Order.UNSPECIFIED


class BinaryID(Struct, frozen=True):
    """A file id, in the older form; only `file_id` is used."""

    file_id: str = ""
    organization_id: str = ""
    location_id: str = ""


# ---- answers


class CaptureMetadata(Struct, frozen=True):
    """Origin of data, with the names at the time of capture."""

    organization_id: str = ""
    location_id: str = ""
    robot_name: str = ""
    robot_id: str = ""
    part_name: str = ""
    part_id: str = ""
    component_type: str = ""
    component_name: str = ""
    method_name: str = ""
    tags: list[str] = []
    mime_type: str = ""


class TabularData(Struct, frozen=True):
    """A reading; `metadata_index` is the position of its metadata in the answer."""

    data: Mapping[str, Any]
    metadata_index: int
    time_requested: datetime
    time_received: datetime


class TabularPage(Struct, frozen=True):
    """A page of readings; an empty page follows the last one."""

    metadata: list[CaptureMetadata]
    data: list[TabularData]
    count: int
    last: str
    total_size_bytes: int = 0


class LatestTabularData(Struct, frozen=True):
    """The newest reading of a method; empty if there is none."""

    time_captured: datetime | None = None
    time_synced: datetime | None = None
    payload: Mapping[str, Any] | None = None


class TabularDataPoint(Struct, frozen=True):
    """A reading with its origin."""

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


class BinaryMetadata(Struct, frozen=True):
    """Metadata of a file."""

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


class BinaryData(Struct, frozen=True):
    """A file; its content is present if it was requested."""

    binary: bytes
    metadata: BinaryMetadata


class BinaryPage(Struct, frozen=True):
    """A page of files; an empty page follows the last one."""

    data: list[BinaryData]
    count: int
    last: str
    total_size_bytes: int = 0


class BinaryByIDs(Struct, frozen=True):
    """The requested files."""

    data: list[BinaryData]
    count: int


class SignedURL(Struct, frozen=True):
    """A link that opens one file without a key."""

    signed_url: str
    expires_at: datetime


class TabularDataSourceType(IntEnum):
    """Where readings are queried; this cloud has one place."""

    UNSPECIFIED = 0
    STANDARD = 1
    HOT_STORAGE = 2
    PIPELINE_SINK = 3


class TabularDataSource(Struct, frozen=True):
    """The source of a query."""

    type: TabularDataSourceType = TabularDataSourceType.UNSPECIFIED
    pipeline_id: str | None = None


class Query(Struct, frozen=True):
    """A saved aggregation."""

    id: str
    organization_id: str
    name: str
    mql_binary: list[bytes]
    created_on: datetime
    updated_at: datetime


class DatasetType(IntEnum):
    """Content of a dataset."""

    BINARY_DATA = 0
    SEQUENCE_DATA = 1


class Dataset(Struct, frozen=True):
    """A named collection of files."""

    id: str
    name: str
    organization_id: str
    time_created: datetime
    type: DatasetType = DatasetType.BINARY_DATA
