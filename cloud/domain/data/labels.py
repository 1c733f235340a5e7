"""Labels of images: bounding boxes, and classifications of whole images."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cloud.domain.data.filters import DataFilter, DataScope, where
from cloud.domain.data.sources import checked, chunks
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Conflict, Sql, Value, counted, inserted
from cloud.values.limits import LABELS
from cloud.values.names import new_id
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Edges:
    """A bounding box in fractions of the image's width and height, 0 to 1, min before max."""

    x_min: float
    y_min: float
    x_max: float
    y_max: float

    def __post_init__(self) -> None:
        for low, high, axis in ((self.x_min, self.x_max, "x"), (self.y_min, self.y_max, "y")):
            if not (math.isfinite(low) and math.isfinite(high) and 0 <= low < high <= 1):
                raise MachineError(
                    f"a box from {axis} = {low:g} to {high:g} is not inside the image",
                    kind=ErrorKind.INVALID,
                    remedy="use fractions with 0 <= min < max <= 1",
                )


@dataclass(frozen=True, slots=True)
class Label:
    """One label of a file; without `edges` it applies to the whole image. `confidence` is 0 to 1."""

    id: str
    label: str
    edges: Edges | None = None
    confidence: float | None = None


def add(
    sql: Sql, subject: str, label: str, edges: Edges | None, confidence: float | None, label_id: str | None = None
) -> str:
    """Add a label to a file; return its id. EXISTS if another label has the id `label_id`."""
    LABELS.check_count(counted(sql, "file_labels", "file_id", subject), "the file")
    label_id = label_id or new_id()
    row: dict[str, Value] = {
        "id": label_id,
        "file_id": subject,
        "label": _label(label),
        "confidence": _share(confidence),
    }
    if edges is not None:
        row |= {"x_min": edges.x_min, "y_min": edges.y_min, "x_max": edges.x_max, "y_max": edges.y_max}
    try:
        inserted(sql, "file_labels", row)
    except Conflict:
        raise MachineError(
            f"there is already a box with the id {label_id}", kind=ErrorKind.EXISTS, remedy="use a new id"
        ) from None
    return label_id


def box(sql: Sql, subject: str, box_id: str) -> Label:
    """Return one bounding box of a file; NOT_FOUND."""
    for candidate in of_files(sql, [subject])[subject]:
        if candidate.id == box_id and candidate.edges is not None:
            return candidate
    raise missing("box", box_id)


def update(sql: Sql, subject: str, changed: Label) -> None:
    """Replace the bounding box of a file that has the id of `changed`; NOT_FOUND."""
    box(sql, subject, changed.id)
    edges = changed.edges
    assert edges is not None
    sql.run(
        "UPDATE file_labels SET label = ?, x_min = ?, y_min = ?, x_max = ?, y_max = ?, confidence = ? WHERE id = ?",
        _label(changed.label),
        edges.x_min,
        edges.y_min,
        edges.x_max,
        edges.y_max,
        _share(changed.confidence),
        changed.id,
    )


def remove(sql: Sql, subject: str, box_id: str) -> None:
    """Delete a bounding box; NOT_FOUND."""
    box(sql, subject, box_id)
    sql.run("DELETE FROM file_labels WHERE id = ?", box_id)


def remove_whole(sql: Sql, subject: str, label_id: str) -> None:
    """Delete a label of the whole image, if the file has it."""
    sql.run("DELETE FROM file_labels WHERE id = ? AND file_id = ? AND x_min IS NULL", label_id, subject)


def of_files(sql: Sql, subjects: Iterable[str]) -> dict[str, list[Label]]:
    """Return the labels of each file, ordered by label."""
    file_ids = list(subjects)
    labels: dict[str, list[Label]] = {subject: [] for subject in file_ids}
    for chunk in chunks(file_ids):
        marks = ", ".join("?" * len(chunk))
        for row in sql.rows(f"SELECT * FROM file_labels WHERE file_id IN ({marks}) ORDER BY label, id", *chunk):
            whole = row["x_min"] is None
            edges = None if whole else Edges(row["x_min"], row["y_min"], row["x_max"], row["y_max"])
            labels[row["file_id"]].append(Label(row["id"], row["label"], edges, row["confidence"]))
    return labels


def names(sql: Sql, data_filter: DataFilter, scope: DataScope) -> list[str]:
    """Return the distinct labels of bounding boxes, sorted."""
    condition, values = where("files", data_filter, scope)
    rows = sql.rows(
        f"""
        SELECT DISTINCT label FROM file_labels JOIN files ON files.id = file_labels.file_id
        JOIN data_sources ON data_sources.number = files.source
        WHERE file_labels.x_min IS NOT NULL AND {condition}
        """,
        *values,
    )
    return sorted(row["label"] for row in rows)


def _label(label: str) -> str:
    label = checked(label.strip(), "a label")
    if not label:
        raise MachineError("the label is empty", kind=ErrorKind.INVALID, remedy="write what the box shows")
    return label


def _share(confidence: float | None) -> float | None:
    if confidence is not None and not 0 <= confidence <= 1:
        raise MachineError(f"the confidence {confidence:g} is not between 0 and 1", kind=ErrorKind.INVALID)
    return confidence
