"""What the page of data is asked for, and what it shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from cloud.data.media import PICTURES
from cloud.data.table import numbers
from cloud.services import data_messages as m
from cloud.web.log_view import time_of
from cloud.web.plots import Plot, plot
from rpc.pages.words import bytes_text

FILES: Final = "files"
READINGS: Final = "readings"
MAX_PLOTS: Final = 12
MAX_SHOWN: Final = 400  # characters of a reading in the table


@dataclass(frozen=True, slots=True)
class Asked:
    """The fields of the page's address; times as UTC, `2026-01-31T12:00`."""

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
    def of(cls, query: Mapping[str, str]) -> Asked:
        """Read an address; what is not known is left out."""
        given = {name: query.get(name, "").strip() for name in cls.__slots__}
        return cls(**{**given, "view": READINGS if given["view"] == READINGS else FILES})

    def filter(self) -> m.Filter:
        """The filter that is meant. INVALID for a time that is none."""
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

    def query(self, **changes: str) -> str:
        """The address with changes, without what is empty."""
        return urlencode({name: value for name, value in {**asdict(self), **changes}.items() if value})

    @property
    def narrowed(self) -> bool:
        """Whether anything is filtered."""
        return any(value for name, value in asdict(self).items() if name not in ("view", "after"))


@dataclass(frozen=True, slots=True)
class Tile:
    """A file as the page shows it. Edges of boxes in percent."""

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
    """A reading as the page shows it."""

    time: datetime
    where: str
    value: str


def tile(one: m.BinaryData) -> Tile:
    """What is shown of a file."""
    known = one.metadata
    source = known.capture_metadata
    return Tile(
        id=known.binary_data_id,
        picture=source.mime_type in PICTURES,
        name=known.file_name or f"{source.component_name or 'file'}{known.file_ext}",
        size=bytes_text(known.file_size_bytes),
        mime=source.mime_type,
        time=known.time_requested,
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
            for box in known.annotations.bboxes
        ),
    )


def lines(page: m.TabularPage) -> list[Line]:
    """What is shown of readings."""
    return [
        Line(one.time_requested, where_text(page.metadata[one.metadata_index]), _short(one.data)) for one in page.data
    ]


def plots(page: m.TabularPage) -> list[Plot]:
    """The numbers of readings over time, each source for itself; the newest reading came first."""
    found: list[Plot] = []
    for index, source in enumerate(page.metadata):
        own = [(one.time_requested, one.data) for one in reversed(page.data) if one.metadata_index == index]
        for path, values in numbers(own).items():
            name = f"{source.robot_name} {source.component_name} {path.removeprefix('readings.')}"
            line = plot(name, values)
            if line is not None and len(found) < MAX_PLOTS:
                found.append(line)
    return found


def where_text(source: m.CaptureMetadata) -> str:
    """Machine, component and method in one line."""
    return " · ".join(one for one in (source.robot_name, source.component_name, source.method_name) if one)


def _short(data: Mapping[str, Any]) -> str:
    text = json.dumps(data.get("readings", data), ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} …"
