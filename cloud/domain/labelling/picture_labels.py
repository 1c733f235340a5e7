"""What people say about one picture: tags and boxes, and merging what two of them changed at the same time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cloud.domain.data import files, labels
from cloud.domain.data.labels import Edges, Label
from cloud.domain.data.sources import checked_tags
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError

PRECISION: Final = 6  # decimals of an edge that are compared: a pixel of any camera is larger
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Box:
    """A labelled box. Its edges are fractions of the picture's width and height."""

    label: str
    edges: Edges
    suggested: bool = False  # by a model, and not confirmed by a person

    def same(self, other: Box | None) -> bool:
        """Return whether both have the same label, the same edges up to PRECISION, and are both confirmed or not."""
        return other is not None and self._compared() == other._compared()

    def _compared(self) -> tuple[object, ...]:
        edges = self.edges
        x_min, y_min, x_max, y_max = (
            round(edge, PRECISION) for edge in (edges.x_min, edges.y_min, edges.x_max, edges.y_max)
        )
        return self.label, self.suggested, x_min, y_min, x_max, y_max


@dataclass(frozen=True, slots=True)
class Annotations:
    """Labels of the whole picture, its boxes by id, and what models suggest for the whole picture."""

    tags: frozenset[str] = frozenset()
    boxes: Mapping[str, Box] = field(default_factory=dict)
    suggested: tuple[str, ...] = ()

    @property
    def labels(self) -> frozenset[str]:
        """Labels of the picture or of a box, without those that only a model suggests."""
        return self.tags | {box.label for box in self.boxes.values() if not box.suggested}

    def same(self, other: Annotations) -> bool:
        """Return whether both say the same."""
        return (
            self.tags == other.tags
            and self.boxes.keys() == other.boxes.keys()
            and all(box.same(other.boxes[box_id]) for box_id, box in self.boxes.items())
        )


@dataclass(frozen=True, slots=True)
class MergedLabels:
    """The annotations with the changes of both; `conflicts` are ids of boxes that both have changed differently.

    `changed` has 1 for each label that the picture got, and -1 for each that it lost: the changes of the counts of
    pictures in its datasets.
    """

    annotations: Annotations
    conflicts: tuple[str, ...] = ()
    changed: Mapping[str, int] = field(default_factory=dict)


def merged(base: Annotations, mine: Annotations, theirs: Annotations) -> MergedLabels:
    """Apply the changes from `base` to `mine` to `theirs`. A box in conflict stays as it is in `theirs`."""
    tags = (theirs.tags | (mine.tags - base.tags)) - (base.tags - mine.tags)
    boxes: dict[str, Box] = {}
    conflicts: list[str] = []
    for box_id in dict.fromkeys((*theirs.boxes, *mine.boxes, *base.boxes)):
        before, own, other = base.boxes.get(box_id), mine.boxes.get(box_id), theirs.boxes.get(box_id)
        if _same(own, before) or _same(own, other):
            kept = other
        elif _same(other, before):
            kept = own
        else:
            kept = other
            conflicts.append(box_id)
        if kept is not None:
            boxes[box_id] = kept
    return MergedLabels(Annotations(tags, boxes), tuple(conflicts))


def changed_labels(before: Annotations, after: Annotations) -> dict[str, int]:
    """Return `MergedLabels.changed` for what was stored before and is stored after."""
    return {
        **dict.fromkeys(sorted(after.labels - before.labels), 1),
        **dict.fromkeys(sorted(before.labels - after.labels), -1),
    }


def _same(left: Box | None, right: Box | None) -> bool:
    return right is None if left is None else left.same(right)


def stored_annotations(sql: Sql, subject: str) -> Annotations:
    """Return what is stored about a file: its tags and classifications are labels of the whole picture."""
    return of_files(sql, [subject])[subject]


def of_files(sql: Sql, subjects: Sequence[str]) -> dict[str, Annotations]:
    """Return the same for several files."""
    tags, stored = files.tags_of(sql, subjects), labels.of_files(sql, subjects)
    return {subject: _annotations(tags[subject], stored[subject]) for subject in subjects}


def _annotations(tags: Iterable[str], stored: Iterable[Label]) -> Annotations:
    boxes: dict[str, Box] = {}
    whole, suggested = set(tags), set[str]()
    for label in stored:
        if label.edges is not None:
            boxes[label.id] = Box(label.label, label.edges, label.confidence is not None)
        elif label.confidence is None:
            whole.add(label.label)
        else:
            suggested.add(label.label)
    return Annotations(frozenset(whole), boxes, tuple(sorted(suggested - whole)))


def store(sql: Sql, subject: str, before: Annotations, after: Annotations) -> None:
    """Change what is stored about a file from `before`, which is stored now, to `after`.

    A person has seen the picture then: suggestions for the whole picture are deleted, and changed boxes are confirmed.
    INVALID for a label, box or id that is not valid; EXISTS for an id that a box of another file has.
    """
    files.add_tags(sql, [subject], checked_tags(after.tags - before.tags))
    removed = before.tags - after.tags
    files.remove_tags(sql, [subject], sorted(removed))
    for label in labels.of_files(sql, [subject])[subject]:
        if label.edges is None and (label.label in removed or label.confidence is not None):
            labels.remove_whole(sql, subject, label.id)
    for box_id in before.boxes.keys() - after.boxes.keys():
        labels.remove(sql, subject, box_id)
    for box_id, box in after.boxes.items():
        if box_id not in before.boxes:
            labels.add(sql, subject, box.label, box.edges, None, checked_id(box_id))
        elif not box.same(before.boxes[box_id]):
            labels.update(sql, subject, Label(box_id, box.label, box.edges))


def checked_id(text: str) -> str:
    """Return the id of a new box; INVALID unless it is a UUID."""
    if not _ID.fullmatch(text):
        raise MachineError(
            f"{text[:40]!r} is not a valid id of a box", kind=ErrorKind.INVALID, remedy="use a random UUID"
        )
    return text
