"""Labels that people offer for the pictures of a dataset, with their colors, in the order of the number keys."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cloud.domain.data.sources import checked
from cloud.store.sql import Conflict, Sql, counted, inserted
from cloud.values.limits import TRAINING_LABELS
from schema import ErrorKind, MachineError

COLORS: Final = (
    "#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008b8b", "#f032e6", "#9a6324", "#808000", "#000075",
    "#ffe119", "#46f0f0",
)  # fmt: skip
"""Colors of new labels, in this order: distinct for most people with a color vision deficiency, too."""

_COLOR: Final = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True, slots=True)
class LabelCount:
    """A label. `listed` says whether people offer it, or it only occurs. `boxes` and `pictures` are in the dataset."""

    name: str
    color: str
    listed: bool
    pictures: int = 0  # with the label, of the whole picture or of a box
    tagged: int = 0  # of the whole picture
    boxes: int = 0
    boxed: int = 0  # pictures with a box of this label


def add(sql: Sql, dataset: str, label: str, color: str = "") -> None:
    """Add a label, by default in the first unused color. EXISTS, INVALID, or EXHAUSTED if there are too many."""
    label = checked_label(label)
    TRAINING_LABELS.check_count(counted(sql, "dataset_labels", "dataset_id", dataset), "the dataset")
    rows = sql.rows("SELECT color, position FROM dataset_labels WHERE dataset_id = ?", dataset)
    used = {row["color"] for row in rows}
    free = next((candidate for candidate in COLORS if candidate not in used), COLORS[len(rows) % len(COLORS)])
    row = {
        "dataset_id": dataset,
        "label": label,
        "color": checked_color(color) if color else free,
        "position": max((entry["position"] for entry in rows), default=0) + 1,
    }
    try:
        inserted(sql, "dataset_labels", row)
    except Conflict:
        raise _taken(label) from None


def remove(sql: Sql, dataset: str, label: str) -> None:
    """Remove a label from the list; pictures keep it."""
    sql.run("DELETE FROM dataset_labels WHERE dataset_id = ? AND label = ?", dataset, label)


def color(sql: Sql, dataset: str, label: str, new_color: str) -> None:
    """Change the color of a label, and list it if it only occurs so far. INVALID for anything but #rrggbb."""
    new_color = checked_color(new_color)
    if not sql.run("UPDATE dataset_labels SET color = ? WHERE dataset_id = ? AND label = ?", new_color, dataset, label):
        add(sql, dataset, label, new_color)


def rename(sql: Sql, dataset: str, label: str, new_label: str) -> None:
    """Rename a label in the list, in tags and boxes of all pictures of the dataset. EXISTS if the new name is in use.

    Tags and boxes belong to pictures, so the new name also appears in other datasets with these pictures.
    """
    new_label = checked_label(new_label)
    if new_label == label:
        return
    if any(entry.name == new_label for entry in label_counts(sql, dataset)):
        raise _taken(new_label)
    sql.run("UPDATE dataset_labels SET label = ? WHERE dataset_id = ? AND label = ?", new_label, dataset, label)
    inside = "file_id IN (SELECT file_id FROM dataset_files WHERE dataset_id = ?)"
    sql.run(f"UPDATE file_labels SET label = ? WHERE label = ? AND {inside}", new_label, label, dataset)
    sql.run(
        f"INSERT INTO file_tags (file_id, tag) SELECT file_id, ? FROM file_tags WHERE tag = ? AND {inside} "
        "ON CONFLICT (file_id, tag) DO NOTHING",
        new_label, label, dataset,
    )  # fmt: skip
    sql.run(f"DELETE FROM file_tags WHERE tag = ? AND {inside}", label, dataset)


_COUNTS: Final = """
    WITH pictures AS (
        SELECT files.id AS id FROM dataset_files JOIN files ON files.id = dataset_files.file_id
        WHERE dataset_files.dataset_id = ? AND files.mime LIKE 'image/%'
    ), labelled AS (
        SELECT file_tags.file_id AS file_id, tag AS label, 1 AS whole FROM file_tags
        JOIN pictures ON pictures.id = file_tags.file_id
        UNION
        SELECT file_labels.file_id AS file_id, label, CASE WHEN x_min IS NULL THEN 1 ELSE 0 END AS whole
        FROM file_labels JOIN pictures ON pictures.id = file_labels.file_id WHERE confidence IS NULL
    )
    SELECT label, COUNT(DISTINCT file_id) AS pictures, SUM(whole) AS tagged FROM labelled GROUP BY label
"""
_BOXES: Final = """
    SELECT label, COUNT(*) AS boxes, COUNT(DISTINCT file_labels.file_id) AS boxed
    FROM file_labels JOIN dataset_files ON dataset_files.file_id = file_labels.file_id
    WHERE dataset_files.dataset_id = ? AND x_min IS NOT NULL AND confidence IS NULL GROUP BY label
"""


def label_counts(sql: Sql, dataset: str) -> list[LabelCount]:
    """Return all labels of a dataset: the listed ones in their order, then those that occur, by name."""
    counts = {row["label"]: row for row in sql.rows(_COUNTS, dataset)}
    boxes = {row["label"]: row for row in sql.rows(_BOXES, dataset)}
    rows = sql.rows("SELECT label, color FROM dataset_labels WHERE dataset_id = ? ORDER BY position, label", dataset)
    listed = {row["label"]: row["color"] for row in rows}
    names: Sequence[str] = [*listed, *sorted(name for name in counts if name not in listed)]
    colors = with_automatic_colors(listed, names)
    return [
        LabelCount(
            name,
            colors[name],
            name in listed,
            int(counts[name]["pictures"]) if name in counts else 0,
            int(counts[name]["tagged"]) if name in counts else 0,
            int(boxes[name]["boxes"]) if name in boxes else 0,
            int(boxes[name]["boxed"]) if name in boxes else 0,
        )
        for name in names
    ]


def with_automatic_colors(colors: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return `colors` with one for each of `names`: an unused one while there is any.

    It is the same whenever the labels are the same.
    """
    chosen = dict(colors)
    for name in names:
        if name not in chosen:
            start = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[0] % len(COLORS)
            candidates, used = (*COLORS[start:], *COLORS[:start]), set(chosen.values())
            chosen[name] = next((candidate for candidate in candidates if candidate not in used), candidates[0])
    return chosen


def checked_label(text: str) -> str:
    """Return a label without surrounding spaces; INVALID if it is empty, too long or not printable."""
    text = checked(text.strip(), "the label")
    if not text or not text.isprintable():
        raise MachineError(
            f"{text[:40]!r} is not a valid label",
            kind=ErrorKind.INVALID,
            remedy="use printable characters: labels.txt has a line for each label",
        )
    return text


def checked_color(text: str) -> str:
    """Return a color; INVALID unless it is #rrggbb."""
    if not _COLOR.fullmatch(text.lower()):
        raise MachineError(f"{text[:40]!r} is not a valid color", kind=ErrorKind.INVALID, remedy="use #rrggbb")
    return text.lower()


def _taken(label: str) -> MachineError:
    return MachineError(
        f"there is already a label called {label!r}", kind=ErrorKind.EXISTS, remedy="choose another name"
    )
