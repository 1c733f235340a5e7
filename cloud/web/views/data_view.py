"""Query and view models of the data page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from cloud.domain.data.media import PICTURES
from cloud.domain.data.series import Plotted
from cloud.services.data import data_messages as m
from cloud.web.views.log_view import time_of
from cloud.web.views.plots import Plot, plot
from rpc.pages.words import bytes_text

FILES: Final = "files"
READINGS: Final = "readings"
MAX_PLOTS: Final = 12
MAX_SHOWN: Final = 400  # characters of a reading in the table


@dataclass(frozen=True, slots=True)
class DataQuery:
    """The query of the page; times are UTC, such as `2026-01-31T12:00`."""

    view: str = FILES
    machine: str = ""
    part: str = ""
    component: str = ""
    type: str = ""
    method: str = ""
    tag: str = ""
    label: str = ""
    dataset: str = ""
    start: str = ""
    end: str = ""
    after: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> DataQuery:
        """Parse a query; unknown fields are ignored."""
        values = {name: query.get(name, "").strip() for name in cls.__slots__}
        return cls(**{**values, "view": READINGS if values["view"] == READINGS else FILES})

    def filter(self) -> m.Filter:
        """Return the filter. INVALID if a time is not valid."""
        start, end = time_of(self.start, "from"), time_of(self.end, "to")
        return m.Filter(
            robot_name=self.machine,
            part_id=self.part,
            component_name=self.component,
            component_type=self.type,
            method=self.method,
            tags_filter=m.TagsFilter(tags=[self.tag]) if self.tag else None,
            bbox_labels=[self.label] if self.label else [],
            dataset_id=self.dataset,
            interval=m.CaptureInterval(start, end) if start or end else None,
        )

    def encoded(self, **changes: str) -> str:
        """Return the query with changes, without empty fields."""
        return urlencode({name: value for name, value in {**asdict(self), **changes}.items() if value})

    @property
    def narrowed(self) -> bool:
        """Whether any filter is set."""
        return any(value for name, value in asdict(self).items() if name not in ("view", "after"))


@dataclass(frozen=True, slots=True)
class Tile:
    """A file, for the template. Edges of boxes are in percent."""

    id: str
    picture: bool
    name: str
    size: str
    mime: str
    time: datetime
    where: str
    tags: tuple[str, ...]
    boxes: tuple[tuple[str, float, float, float, float], ...]  # label, left, top, width, height


@dataclass(frozen=True, slots=True)
class Line:
    """A reading, for the template."""

    time: datetime
    where: str
    value: str


def tile(file: m.BinaryData) -> Tile:
    """Return the view model of a file."""
    metadata = file.metadata
    source = metadata.capture_metadata
    return Tile(
        id=metadata.binary_data_id,
        picture=source.mime_type in PICTURES,
        name=metadata.file_name or f"{source.component_name or 'file'}{metadata.file_ext}",
        size=bytes_text(metadata.file_size_bytes),
        mime=source.mime_type,
        time=metadata.time_requested,
        where=where_text(source),
        tags=tuple(source.tags),
        boxes=tuple(
            (
                box.label,
                box.x_min_normalized * 100,
                box.y_min_normalized * 100,
                (box.x_max_normalized - box.x_min_normalized) * 100,
                (box.y_max_normalized - box.y_min_normalized) * 100,
            )
            for box in metadata.annotations.bboxes
        ),
    )


def lines(page: m.TabularPage) -> list[Line]:
    """Return the view models of readings."""
    return [
        Line(reading.time_requested, where_text(page.metadata[reading.metadata_index]), _short(reading.data))
        for reading in page.data
    ]


def plots(plotted: Plotted | None) -> list[Plot]:
    """Return plots of at most MAX_PLOTS fields."""
    if plotted is None:
        return []
    drawn = [
        plot(
            f"{each.source.machine} {each.source.component} {field.name.removeprefix('readings.')}",
            field,
            plotted.buckets,
            sampled=each.sampled,
        )
        for each in plotted.series
        for field in each.fields
    ]
    return drawn[:MAX_PLOTS]


def where_text(source: m.CaptureMetadata) -> str:
    """Return machine, component and method as one line."""
    return " · ".join(name for name in (source.robot_name, source.component_name, source.method_name) if name)


def _short(data: Mapping[str, Any]) -> str:
    text = json.dumps(data.get("readings", data), ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} …"
