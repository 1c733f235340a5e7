"""Pictures of a dataset with their labels, as training reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.data import files, labels
from cloud.domain.data.datasets import DatasetRecord, dataset
from cloud.domain.data.labels import Label
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql
from cloud.values.limits import TRAINING_BYTES, TRAINING_PICTURES
from cloud.values.times import moment_of
from training.jobs import BoxLabel, ExampleCounts, ModelType, TrainingPicture


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """A picture with its content's place in the file store. `location` has the ids of where it was captured."""

    picture: TrainingPicture
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


_PICTURES: Final = """
    pictures AS (
        SELECT files.id AS id, files.size AS size FROM dataset_files JOIN files ON files.id = dataset_files.file_id
        JOIN data_sources ON data_sources.number = files.source
        WHERE dataset_files.dataset_id = ? AND data_sources.organization_id = ? AND files.mime LIKE 'image/%'
    )
"""
_LABELS_OF: Final = """
    SELECT pictures.id AS id, label FROM pictures JOIN file_labels ON file_labels.file_id = pictures.id
    WHERE confidence IS NULL AND x_min IS
"""
_NAMED: Final = {
    True: f"{_LABELS_OF} NOT NULL GROUP BY pictures.id, label",
    False: f"""
        SELECT pictures.id AS id, tag AS label FROM pictures JOIN file_tags ON file_tags.file_id = pictures.id
        UNION {_LABELS_OF} NULL
    """,
}
"""Labels of pictures, each once: of their boxes, or of whole pictures."""


def examples(sql: Sql, subject: str, owner: str, model_type: ModelType, labels: Sequence[str]) -> ExampleCounts:
    """Count the pictures of a dataset for a job, as `submission.count_examples` counts those of `pictures`.

    NOT_FOUND and INVALID as in `pictures`. Stored boxes are all valid.
    """
    TRAINING_PICTURES.check(dataset_of(sql, subject, owner).files, "the dataset")
    named = f"WITH {_PICTURES}, named AS ({_NAMED[model_type is ModelType.OBJECT_DETECTION]})"
    (whole,) = sql.rows(
        f"""
        {named} SELECT COUNT(*) AS total, COALESCE(SUM(size), 0) AS size, COALESCE(SUM(
            CASE WHEN id NOT IN (SELECT id FROM named)
            AND EXISTS (SELECT 1 FROM file_labels WHERE file_id = pictures.id AND confidence IS NOT NULL) THEN 1 END
        ), 0) AS suggested FROM pictures
        """,
        subject,
        owner,
    )
    TRAINING_BYTES.check(whole["size"], "the dataset")
    (chosen,) = sql.rows(
        f"""
        {named} SELECT COUNT(*) AS labelled, COUNT(CASE WHEN chosen > 0 THEN 1 END) AS used,
            COUNT(CASE WHEN chosen > 1 THEN 1 END) AS ambiguous
        FROM (
            SELECT SUM(CASE WHEN label IN ({", ".join("?" * len(labels)) or "NULL"}) THEN 1 ELSE 0 END) AS chosen
            FROM named GROUP BY id
        ) AS each
        """,
        subject,
        owner,
        *labels,
    )
    by_label = sql.rows(f"{named} SELECT label, COUNT(*) AS count FROM named GROUP BY label", subject, owner)
    return ExampleCounts(
        whole["total"],
        chosen["labelled"],
        whole["suggested"],
        chosen["used"],
        chosen["ambiguous"],
        {row["label"]: row["count"] for row in by_label},
    )


def dataset_of(sql: Sql, subject: str, owner: str) -> DatasetRecord:
    """Return a dataset of an organization; NOT_FOUND for one of another."""
    record = dataset(sql, subject)
    if record.organization_id != owner:
        raise missing("dataset", subject)
    return record


def _picture(subject: str, tags: list[str], labels_of_file: list[Label]) -> TrainingPicture:
    """Return what people said about a file: its tags and classifications are labels of the whole picture.

    Labels with a confidence are suggestions of a model, not what people said: training from them would confirm errors.
    """
    confirmed = [label for label in labels_of_file if label.confidence is None]
    whole = [label.label for label in confirmed if label.edges is None]
    boxes = tuple(
        BoxLabel(label.label, edges.x_min, edges.y_min, edges.x_max, edges.y_max)
        for label in confirmed
        if (edges := label.edges) is not None
    )
    return TrainingPicture(subject, frozenset((*tags, *whole)), boxes, suggested=len(confirmed) < len(labels_of_file))
