"""Calls of the labelling pages, which are not published. Labels themselves are those of DataService."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cloud.domain.data import datasets
from cloud.domain.data.datasets import DatasetRecord
from cloud.domain.labelling import palette, picture_labels, pictures
from cloud.domain.labelling.palette import LabelCount
from cloud.domain.labelling.picture_labels import Annotations, MergedLabels
from cloud.domain.labelling.pictures import Neighbours, PictureFilter, PictureRecord, Totals
from cloud.domain.permissions.access import ObjectKind, Role, place_of, role_at
from cloud.domain.permissions.rules import allow, operator
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql

MACHINES: Final = 200  # names to choose from


@dataclass(frozen=True, slots=True)
class Listed:
    """A dataset in a list."""

    dataset: DatasetRecord
    totals: Totals


@dataclass(frozen=True, slots=True)
class PictureTile:
    """A picture of a page, with its labels."""

    picture: PictureRecord
    annotations: Annotations


@dataclass(frozen=True, slots=True)
class DatasetPage:
    """A dataset, and a page of its pictures."""

    dataset: DatasetRecord
    totals: Totals
    labels: list[LabelCount]
    machines: list[str]
    tiles: list[PictureTile]
    may_delete: bool


@dataclass(frozen=True, slots=True)
class Labelled:
    """A picture to label."""

    picture: PictureRecord
    annotations: Annotations
    neighbours: Neighbours


@guarded
class LabellingService(Service):
    """A call of a labelling page. Datasets belong to an organization: other roles give no access."""

    @allow(operator(ObjectKind.DATASET, "dataset", inside=True))
    async def dataset_page(self, dataset: str, chosen: PictureFilter, after: int, limit: int) -> DatasetPage:
        """Return a dataset with its labels and the pictures with numbers above `after`."""

        def work(sql: Sql) -> DatasetPage:
            records = pictures.page(sql, dataset, chosen, after, limit)
            by_id = picture_labels.of_files(sql, [record.id for record in records])
            role = role_at(sql, self.author, place_of(sql, ObjectKind.DATASET, dataset))
            return DatasetPage(
                datasets.dataset(sql, dataset),
                pictures.totals_of(sql, [dataset])[dataset],
                palette.label_counts(sql, dataset),
                pictures.machines(sql, dataset, MACHINES),
                [PictureTile(record, by_id[record.id]) for record in records],
                role >= Role.OWNER,
            )

        return await self.read_checked(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization", inside=True))
    async def listed(self, organization: str, after: str, limit: int) -> list[Listed]:
        """Return the datasets of an organization with names after `after`, sorted by name, with their totals."""

        def work(sql: Sql) -> list[Listed]:
            records = datasets.page(sql, organization, after, limit)
            totals = pictures.totals_of(sql, [record.id for record in records])
            return [Listed(record, totals[record.id]) for record in records]

        return await self.read_checked(work)

    @allow(operator(ObjectKind.DATASET, "dataset", inside=True))
    async def labels(self, dataset: str) -> list[LabelCount]:
        """Return the labels of a dataset."""
        return await self.read_checked(lambda sql: palette.label_counts(sql, dataset))

    @allow(operator(ObjectKind.DATASET, "dataset", inside=True))
    async def first_picture(self, dataset: str, chosen: PictureFilter) -> str:
        """Return the id of the first picture of a filter, empty if there is none."""
        records = await self.read_checked(lambda sql: pictures.page(sql, dataset, chosen, 0, 1))
        return records[0].id if records else ""

    @allow(operator(ObjectKind.DATASET, "dataset", inside=True))
    async def picture(self, dataset: str, subject: str, chosen: PictureFilter) -> Labelled:
        """Return a picture of a dataset and its neighbours in a filter; NOT_FOUND."""

        def work(sql: Sql) -> Labelled:
            record = pictures.picture(sql, dataset, subject)
            around = pictures.neighbours(sql, dataset, chosen, record.number)
            return Labelled(record, picture_labels.stored_annotations(sql, subject), around)

        return await self.read_checked(work)

    @allow(operator(ObjectKind.DATASET, "dataset"))
    async def set_annotations(self, dataset: str, subject: str, base: Annotations, mine: Annotations) -> MergedLabels:
        """Apply the changes from `base` to `mine` to what is stored about a picture; return what is stored then.

        With conflicts, nothing is stored: another person has changed the same boxes. Repeating a call changes nothing.
        """

        def work(sql: Sql) -> MergedLabels:
            pictures.picture(sql, dataset, subject)
            self.require(sql, Role.OPERATOR, ObjectKind.FILE, subject)
            stored = picture_labels.stored_annotations(sql, subject)
            result = picture_labels.merged(base, mine, stored)
            if result.conflicts:
                return MergedLabels(stored, result.conflicts)
            picture_labels.store(sql, subject, stored, result.annotations)
            pictures.reviewed(sql, dataset, subject)
            saved = picture_labels.stored_annotations(sql, subject)
            return MergedLabels(saved, changed=picture_labels.changed_labels(stored, saved))

        return await self.change(work)

    @allow(operator(ObjectKind.DATASET, "dataset"))
    async def add_label(self, dataset: str, label: str) -> None:
        """Add a label to choose from."""
        await self.change(lambda sql: palette.add(sql, dataset, label))

    @allow(operator(ObjectKind.DATASET, "dataset"))
    async def rename_label(self, dataset: str, label: str, new_label: str) -> None:
        """Rename a label everywhere in a dataset."""
        await self.change(lambda sql: palette.rename(sql, dataset, label, new_label))

    @allow(operator(ObjectKind.DATASET, "dataset"))
    async def set_label_color(self, dataset: str, label: str, color: str) -> None:
        """Change the color of a label."""
        await self.change(lambda sql: palette.color(sql, dataset, label, color))

    @allow(operator(ObjectKind.DATASET, "dataset"))
    async def remove_label(self, dataset: str, label: str) -> None:
        """Remove a label from those to choose from; pictures keep it."""
        await self.change(lambda sql: palette.remove(sql, dataset, label))
