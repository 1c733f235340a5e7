"""Captured readings as rows of plain values, for export. Reads files; does not need a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from rpc.api import read_struct
from runtime.parts.data.files.encode import DAT, EXTENSIONS
from runtime.parts.data.files.messages import parameters_of
from runtime.parts.data.files.names import safe_part
from runtime.parts.data.files.read import Content, capture_files, moment, read_capture_file

FACTS: Final = (
    "time_requested",
    "time_received",
    "component_type",
    "component_name",
    "method_name",
    "additional_parameters",
    "tags",
)
"""Columns of every row, with the names of the published schema of captured data."""

BINARY: Final = ("mime_type", "bytes", "labels", "file")
"""Additional columns of a binary reading: an image, a point cloud or sound."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of readings. Empty and None mean all. `resource` is a simple or full name."""

    resource: str = ""
    method: str = ""
    tag: str = ""
    since: datetime | None = None  # aware; earliest time_requested
    until: datetime | None = None  # aware; time_requested must be earlier

    def has_file(self, header: Any) -> bool:
        """Return whether a file, by its header, may contain selected readings."""
        names = (header.component_name, f"{header.component_type}/{header.component_name}")
        return (
            (not self.resource or self.resource in names)
            and (not self.method or self.method == header.method_name)
            and (not self.tag or self.tag in header.tags)
        )

    def has_time(self, when: datetime) -> bool:
        """Return whether the time of a reading is selected."""
        return (self.since is None or when >= self.since) and (self.until is None or when < self.until)


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """One reading with its facts, and either data or bytes."""

    facts: Mapping[str, Any]
    data: Mapping[str, Any]  # empty for a binary reading
    binary: bytes | None = None
    labels: tuple[str, ...] = ()  # of an image: its source, and detected classes
    mime_type: str = ""
    file: str = ""  # a name for the bytes, unique in its capture folder


def captured_rows(folder: Path, selection: Selection, damaged: list[Content] | None = None) -> Iterator[ReadingRow]:
    """Yield every complete selected reading, file by file. Incomplete or damaged files are added to `damaged`."""
    for path in capture_files(folder):
        try:
            content = read_capture_file(path)
        except FileNotFoundError:
            continue  # deleted or closed in the meantime
        if content.damage is not None and damaged is not None:
            damaged.append(content)
        if content.header is not None and selection.has_file(content.header):
            yield from _rows(content, selection)


def _rows(content: Content, selection: Selection) -> Iterator[ReadingRow]:
    header = content.header
    common = {
        "component_type": header.component_type,
        "component_name": header.component_name,
        "method_name": header.method_name,
        "additional_parameters": parameters_of(header),
        "tags": list(header.tags),
    }
    for index, reading in enumerate(content.readings):
        requested = moment(reading.metadata.time_requested)
        if not selection.has_time(requested):
            continue
        facts = {"time_requested": requested, "time_received": moment(reading.metadata.time_received), **common}
        if reading.WhichOneof("data") == "struct":
            yield ReadingRow(facts, read_struct(reading.struct))
            continue
        annotations = reading.metadata.annotations
        labels = tuple(annotation.label for annotation in (*annotations.classifications, *annotations.bboxes))
        number = f"-{index}" if index else ""
        extension = header.file_extension if header.file_extension != DAT else EXTENSIONS.get(header.mime_type, DAT)
        name = f"{safe_part(header.component_name)}-{header.method_name}-{content.path.stem}{number}{extension}"
        yield ReadingRow(facts, {}, reading.binary, labels, header.mime_type, name)


def flattened(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten nested mappings to columns such as `readings.temperature`. Lists are not flattened."""
    for key, value in data.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping) and value:
            yield from flattened(value, name)
        else:
            yield name, value
