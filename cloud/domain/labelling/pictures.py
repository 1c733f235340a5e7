"""Pictures of a dataset, filtered, in order of arrival: pages, neighbours of a picture, totals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from cloud.domain.data.media import PICTURES
from cloud.domain.data.sources import chunks
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql, Value
from cloud.values.times import moment_of, stored


class LabellingProgress(StrEnum):
    """Which pictures a filter shows."""

    ALL = ""
    UNLABELLED = "unlabelled"
    LABELLED = "labelled"
    SUGGESTED = "suggested"  # with labels of a model that no person has confirmed
    SUSPICIOUS = "suspicious"  # the newest model contradicts their labels


@dataclass(frozen=True, slots=True)
class PictureFilter:
    """All given fields must match. Pictures are captured from `start` on and before `end`."""

    progress: LabellingProgress = LabellingProgress.ALL
    label: str = ""  # of the whole picture or of a box
    machine: str = ""  # name
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What the newest model says about a picture instead of its labels, and how sure it is, from 0 to 1."""

    predicted: tuple[str, ...]
    score: float
    job: str


@dataclass(frozen=True, slots=True)
class PictureRecord:
    """A picture of a dataset."""

    number: int
    id: str
    name: str
    captured: datetime
    machine: str
    component: str
    suspicion: Suspicion | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of pictures in a dataset."""

    pictures: int
    unlabelled: int
    suspicious: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Ids of the previous and the next picture of a filter, empty at its ends, and the place among `count`."""

    previous: str
    following: str
    position: int
    count: int


_TYPES: Final = ", ".join(f"'{mime}'" for mime in sorted(PICTURES))
_PICTURE: Final = f"files.mime IN ({_TYPES})"
_JOINED: Final = """
    FROM dataset_files JOIN files ON files.id = dataset_files.file_id
    JOIN data_sources ON data_sources.number = files.source
    LEFT JOIN dataset_suspects ON dataset_suspects.dataset_id = dataset_files.dataset_id
        AND dataset_suspects.file_id = files.id
"""
_FROM: Final = f"{_JOINED} WHERE dataset_files.dataset_id = ? AND {_PICTURE}"
_COLUMNS: Final = """
    files.number AS number, files.id AS id, files.name AS name, files.extension AS extension,
    files.requested AS requested, data_sources.machine AS machine, data_sources.component AS component,
    dataset_suspects.predicted AS predicted, dataset_suspects.score AS score, dataset_suspects.job_id AS job_id
"""
_LABELLED: Final = (
    "(EXISTS (SELECT 1 FROM file_tags WHERE file_tags.file_id = files.id)"
    " OR EXISTS (SELECT 1 FROM file_labels WHERE file_labels.file_id = files.id AND confidence IS NULL))"
)
_SUGGESTED: Final = "EXISTS (SELECT 1 FROM file_labels WHERE file_labels.file_id = files.id AND confidence IS NOT NULL)"
_PROGRESS: Final[Mapping[LabellingProgress, str]] = {
    LabellingProgress.UNLABELLED: f"NOT {_LABELLED}",
    LabellingProgress.LABELLED: _LABELLED,
    LabellingProgress.SUGGESTED: _SUGGESTED,
    LabellingProgress.SUSPICIOUS: "dataset_suspects.file_id IS NOT NULL",
}


def page(sql: Sql, dataset: str, chosen: PictureFilter, after: int, limit: int) -> list[PictureRecord]:
    """Return the pictures with numbers above `after`, at most `limit`."""
    condition, values = _condition(chosen)
    rows = sql.rows(
        f"SELECT {_COLUMNS} {_FROM}{condition} AND files.number > ? ORDER BY files.number LIMIT ?",
        dataset, *values, after, limit,
    )  # fmt: skip
    return [_record(row) for row in rows]


def picture(sql: Sql, dataset: str, subject: str) -> PictureRecord:
    """Return one picture; NOT_FOUND if the dataset does not contain it."""
    row = sql.row(f"SELECT {_COLUMNS} {_FROM} AND files.id = ?", dataset, subject)
    if row is None:
        raise missing("picture", subject)
    return _record(row)


def neighbours(sql: Sql, dataset: str, chosen: PictureFilter, number: int) -> Neighbours:
    """Return what is before and after the picture with this number, which need not match the filter any more."""
    condition, values = _condition(chosen)
    ids = []
    for sign, order in (("<", "DESC"), (">", "ASC")):
        row = sql.row(
            f"SELECT files.id AS id {_FROM}{condition} AND files.number {sign} ? ORDER BY files.number {order} LIMIT 1",
            dataset, *values, number,
        )  # fmt: skip
        ids.append("" if row is None else str(row["id"]))
    row = sql.row(
        f"SELECT COUNT(*) AS count, COALESCE(SUM(CASE WHEN files.number <= ? THEN 1 ELSE 0 END), 0) AS position "
        f"{_FROM}{condition}",
        number, dataset, *values,
    )  # fmt: skip
    assert row is not None
    return Neighbours(ids[0], ids[1], int(row["position"]), int(row["count"]))


def totals_of(sql: Sql, datasets: Sequence[str]) -> dict[str, Totals]:
    """Return, for each dataset, the numbers of pictures: all, without labels, and contradicted by the newest model."""
    totals = dict.fromkeys(datasets, Totals(0, 0, 0))
    for chunk in chunks(list(datasets)):
        rows = sql.rows(
            f"SELECT dataset_files.dataset_id AS dataset, COUNT(*) AS pictures, "
            f"SUM(CASE WHEN {_LABELLED} THEN 0 ELSE 1 END) AS unlabelled, "
            f"COUNT(dataset_suspects.file_id) AS suspicious {_JOINED} "
            f"WHERE dataset_files.dataset_id IN ({', '.join('?' * len(chunk))}) AND {_PICTURE} "
            f"GROUP BY dataset_files.dataset_id",
            *chunk,
        )
        totals |= {
            row["dataset"]: Totals(int(row["pictures"]), int(row["unlabelled"]), int(row["suspicious"])) for row in rows
        }
    return totals


def machines(sql: Sql, dataset: str, limit: int) -> list[str]:
    """Return the names of the machines that captured the pictures, sorted, at most `limit`."""
    rows = sql.rows(
        f"SELECT DISTINCT data_sources.machine AS machine {_FROM} ORDER BY data_sources.machine LIMIT ?", dataset, limit
    )
    return [row["machine"] for row in rows]


def reviewed(sql: Sql, dataset: str, subject: str) -> None:
    """Record that a person has looked at a picture: it is not suspicious any more."""
    sql.run("DELETE FROM dataset_suspects WHERE dataset_id = ? AND file_id = ?", dataset, subject)


def _condition(chosen: PictureFilter) -> tuple[str, list[Value]]:
    conditions, values = [""], list[Value]()
    if chosen.progress in _PROGRESS:
        conditions.append(_PROGRESS[chosen.progress])
    if chosen.label:
        conditions.append(
            "(EXISTS (SELECT 1 FROM file_tags WHERE file_tags.file_id = files.id AND tag = ?)"
            " OR EXISTS (SELECT 1 FROM file_labels WHERE file_labels.file_id = files.id AND label = ?))"
        )
        values += [chosen.label, chosen.label]
    if chosen.machine:
        conditions.append("data_sources.machine = ?")
        values.append(chosen.machine)
    if chosen.start is not None:
        conditions.append("files.requested >= ?")
        values.append(stored(chosen.start))
    if chosen.end is not None:
        conditions.append("files.requested < ?")
        values.append(stored(chosen.end))
    return " AND ".join(conditions), values


def _record(row: Mapping[str, Any]) -> PictureRecord:
    suspicion = None
    if row["predicted"] is not None:
        suspicion = Suspicion(tuple(json.loads(row["predicted"])), float(row["score"]), row["job_id"])
    return PictureRecord(
        row["number"],
        row["id"],
        row["name"] or f"{row['component'] or 'picture'}{row['extension']}",
        moment_of(row["requested"]),
        row["machine"],
        row["component"],
        suspicion,
    )
