"""Pictures of a dataset with their labels, as training reads them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloud.domain.data import files, labels
from cloud.domain.data.datasets import DatasetRecord, dataset
from cloud.domain.data.labels import Label
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql
from cloud.values.limits import TRAINING_BYTES, TRAINING_PICTURES
from cloud.values.times import moment_of
from training.jobs.submission import Box, Picture


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """A picture with its content's place in the file store. `location` has the ids of where it was captured."""

    picture: Picture
    blob: str
    size: int
    extension: str
    captured: datetime
    location: dict[str, Any]


def pictures(sql: Sql, subject: str, owner: str) -> list[StoredPicture]:
    """Return the pictures of a dataset in order of upload, without its other files.

    NOT_FOUND if the dataset belongs to another organization, INVALID if it has too many files.
    """
    dataset_record = dataset_of(sql, subject, owner)
    TRAINING_PICTURES.check(dataset_record.files, "the dataset")
    rows = sql.rows(
        """
        SELECT files.id AS id, blob, size, extension, requested, location_id, machine_id, part_id, component
        FROM dataset_files JOIN files ON files.id = dataset_files.file_id
        JOIN data_sources ON data_sources.number = files.source
        WHERE dataset_files.dataset_id = ? AND data_sources.organization_id = ? AND files.mime LIKE 'image/%'
        ORDER BY files.number
        """,
        subject,
        owner,
    )
    TRAINING_BYTES.check(sum(row["size"] for row in rows), "the dataset")
    ids = [row["id"] for row in rows]
    tags, labels_by_file = files.tags_of(sql, ids), labels.of_files(sql, ids)
    return [
        StoredPicture(
            _picture(row["id"], tags[row["id"]], labels_by_file[row["id"]]),
            row["blob"],
            row["size"],
            row["extension"],
            moment_of(row["requested"]),
            {
                "location_id": row["location_id"],
                "robot_id": row["machine_id"],
                "part_id": row["part_id"],
                "component_name": row["component"],
            },
        )
        for row in rows
    ]


def dataset_of(sql: Sql, subject: str, owner: str) -> DatasetRecord:
    """Return a dataset of an organization; NOT_FOUND for one of another."""
    record = dataset(sql, subject)
    if record.organization_id != owner:
        raise missing("dataset", subject)
    return record


def _picture(subject: str, tags: list[str], labels_of_file: list[Label]) -> Picture:
    """Return what people said about a file: its tags and classifications are labels of the whole picture.

    Labels with a confidence are suggestions of a model, not what people said: training from them would confirm errors.
    """
    confirmed = [label for label in labels_of_file if label.confidence is None]
    whole = [label.label for label in confirmed if label.edges is None]
    boxes = tuple(
        Box(label.label, edges.x_min, edges.y_min, edges.x_max, edges.y_max)
        for label in confirmed
        if (edges := label.edges) is not None
    )
    return Picture(subject, frozenset((*tags, *whole)), boxes, suggested=len(confirmed) < len(labels_of_file))
