"""Query and view models of the data page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from cloud.domain.data.media import PICTURES
from cloud.domain.data.series import Plotted
from cloud.domain.data.table import flat
from cloud.services.data import data_messages as m
from cloud.web.views.log_view import time_of
from cloud.web.views.plots import Plot, plot
from support.text.words import bytes_text, number, shorten

FILES: Final = "files"
READINGS: Final = "readings"
DRAWN: Final = "drawn"
MAX_PLOTS: Final = 12
MAX_COLUMNS: Final = 20  # of the table of readings; further values are in a last column
MAX_SHOWN: Final = 100  # characters of a value in the table
_PREFIX: Final = "readings."  # of the path of each field of most readings


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
    plots: str = ""  # DRAWN: the page has plots for browsers without scripts

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
        return any(value for name, value in asdict(self).items() if name not in ("view", "after", "plots"))


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
class ReadingLine:
    """A reading, for the template: a text for each column, and `others`, as JSON, if there are more values."""

    time: datetime
    where: str
    cells: tuple[str, ...]
    others: str


@dataclass(frozen=True, slots=True)
class ReadingTable:
    """Readings as a table with a column for each field, for the template."""

    columns: tuple[str, ...] = ()
    numeric: frozenset[int] = frozenset()  # columns without text
    lines: tuple[ReadingLine, ...] = ()

    @property
    def has_others(self) -> bool:
        """Whether any reading has values without a column."""
        return any(line.others for line in self.lines)


def amount(query: DataQuery, length: int, more: bool) -> str:
    """Return how much a page of this length shows. Nothing is counted beyond it, which would read everything."""
    kind = query.view if length != 1 else query.view.removesuffix("s")
    if query.after:
        return f"{length} older {kind}"
    return f"the newest {length} {kind}" if more else f"{length} {kind}"


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


def table(page: m.TabularPage) -> ReadingTable:
    """Return readings as a table of at most MAX_COLUMNS columns. This takes long if readings are large."""
    values = [flat(reading.data) for reading in page.data]
    columns = sorted(dict.fromkeys(path for each in values for path in each))[:MAX_COLUMNS]
    where = [where_text(source) for source in page.metadata]
    return ReadingTable(
        tuple(path.removeprefix(_PREFIX) for path in columns),
        frozenset(
            number for number, path in enumerate(columns) if not any(isinstance(each.get(path), str) for each in values)
        ),
        tuple(
            ReadingLine(
                reading.time_requested,
                where[reading.metadata_index],
                tuple(_shown(each.get(path)) for path in columns),
                _shown_others({path: value for path, value in each.items() if path not in columns}),
            )
            for reading, each in zip(page.data, values, strict=True)
        ),
    )


def _shown(value: str | float | bool | None) -> str:
    """Return a value as text of at most MAX_SHOWN characters."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    return shorten(value or "", MAX_SHOWN)


def _shown_others(values: Mapping[str, str | float | bool]) -> str:
    return shorten(json.dumps(values, ensure_ascii=False), MAX_SHOWN) if values else ""


def plots(plotted: Plotted | None) -> list[Plot]:
    """Return plots of at most MAX_PLOTS fields."""
    if plotted is None:
        return []
    drawn = [
        plot(
            f"{each.source.machine} {each.source.component} {field.name.removeprefix(_PREFIX)}",
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
