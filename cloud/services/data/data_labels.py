"""Annotations of captured files: tags, bounding boxes, membership in datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloud.domain.data import datasets, files, labels
from cloud.domain.data.filters import DataFilter
from cloud.domain.data.pages import MAX_PAGE, Page
from cloud.domain.data.sources import checked_tags
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.data_scope import scope_of
from cloud.domain.permissions.rules import FILTERED, allow, operator
from cloud.services.common.base import Service
from cloud.services.data import data_messages as m
from cloud.services.data.data_words import filter_of, id_of, ids_of
from cloud.store.sql import Sql


class Labels(Service):
    """Tags, bounding boxes and datasets of files."""

    # ---- tags

    @allow(FILTERED)
    async def add_tags_to_binary_data_by_ids(
        self, tags: Sequence[str], binary_ids: Sequence[m.BinaryID] = (), binary_data_ids: Sequence[str] = ()
    ) -> None:
        """Add tags to files; NOT_FOUND, without any change, if one is missing."""
        subjects, checked = ids_of(binary_ids, binary_data_ids), checked_tags(tags)

        def work(sql: Sql) -> None:
            self._require_operator(sql, subjects)
            files.add_tags(sql, subjects, checked)

        await self.change(work)

    @allow(FILTERED)
    async def add_tags_to_binary_data_by_filter(
        self,
        tags: Sequence[str],
        filter: m.Filter | None = None,  # noqa: A002 - field of the wire
    ) -> None:
        """Add tags to all files of a filter."""
        checked = checked_tags(tags)
        await self.change(lambda sql: files.add_tags(sql, self._ids(sql, filter), checked))

    @allow(FILTERED)
    async def remove_tags_from_binary_data_by_ids(
        self, tags: Sequence[str], binary_ids: Sequence[m.BinaryID] = (), binary_data_ids: Sequence[str] = ()
    ) -> int:
        """Remove tags from files; return the number of removed tags."""
        subjects, checked = ids_of(binary_ids, binary_data_ids), checked_tags(tags)

        def work(sql: Sql) -> int:
            self._require_operator(sql, subjects)
            return files.remove_tags(sql, subjects, checked)

        return await self.change(work)

    @allow(FILTERED)
    async def remove_tags_from_binary_data_by_filter(
        self,
        tags: Sequence[str],
        filter: m.Filter | None = None,  # noqa: A002 - field of the wire
    ) -> int:
        """Remove tags from all files of a filter; return the number of removed tags."""
        checked = checked_tags(tags)
        return await self.change(lambda sql: files.remove_tags(sql, self._ids(sql, filter), checked))

    @allow(FILTERED)
    async def tags_by_filter(self, filter: m.Filter | None = None) -> list[str]:  # noqa: A002 - field of the wire
        """Return all tags of the files of a filter, sorted."""
        data_filter = filter_of(filter)
        return await self.read(lambda sql: files.all_tags(sql, data_filter, scope_of(sql, self.author, Role.OPERATOR)))

    @allow(FILTERED)
    async def tags_of_newest_files(self) -> list[str]:
        """Return the tags of the newest files, sorted. Not an RPC; used by pages, where they are suggestions."""

        def work(sql: Sql) -> list[str]:
            newest = Page(limit=MAX_PAGE, descending=True)
            records = files.query(sql, DataFilter(), scope_of(sql, self.author, Role.OPERATOR), newest)
            return sorted(
                {tag for tags in files.tags_of(sql, [record.id for record in records]).values() for tag in tags}
            )

        return await self.read(work)

    # ---- bounding boxes

    @allow(FILTERED)
    async def add_bounding_box_to_image_by_id(
        self,
        label: str,
        x_min_normalized: float,
        y_min_normalized: float,
        x_max_normalized: float,
        y_max_normalized: float,
        binary_id: m.BinaryID | None = None,
        binary_data_id: str = "",
        confidence: float | None = None,
    ) -> str:
        """Add a bounding box and return its id. INVALID if it is not inside the picture."""
        subject = id_of(binary_id, binary_data_id)
        edges = labels.Edges(x_min_normalized, y_min_normalized, x_max_normalized, y_max_normalized)

        def work(sql: Sql) -> str:
            self._require_operator(sql, [subject])
            return labels.add(sql, subject, label, edges, confidence)

        return await self.change(work)

    @allow(FILTERED)
    async def update_bounding_box(
        self,
        bbox_id: str,
        binary_id: m.BinaryID | None = None,
        binary_data_id: str = "",
        label: str | None = None,
        x_min_normalized: float | None = None,
        y_min_normalized: float | None = None,
        x_max_normalized: float | None = None,
        y_max_normalized: float | None = None,
        confidence: float | None = None,
    ) -> None:
        """Change the given properties of a bounding box."""
        subject = id_of(binary_id, binary_data_id)
        changes = {
            "x_min": x_min_normalized,
            "y_min": y_min_normalized,
            "x_max": x_max_normalized,
            "y_max": y_max_normalized,
        }

        def work(sql: Sql) -> None:
            self._require_operator(sql, [subject])
            before = labels.box(sql, subject, bbox_id)
            assert before.edges is not None
            edges = replace(before.edges, **{name: value for name, value in changes.items() if value is not None})
            new_confidence = before.confidence if confidence is None else confidence
            new_label = before.label if label is None else label
            labels.update(sql, subject, labels.Label(bbox_id, new_label, edges, new_confidence))

        await self.change(work)

    @allow(FILTERED)
    async def remove_bounding_box_from_image_by_id(
        self, bbox_id: str, binary_id: m.BinaryID | None = None, binary_data_id: str = ""
    ) -> None:
        """Remove a bounding box."""
        subject = id_of(binary_id, binary_data_id)

        def work(sql: Sql) -> None:
            self._require_operator(sql, [subject])
            labels.remove(sql, subject, bbox_id)

        await self.change(work)

    @allow(FILTERED)
    async def bounding_box_labels_by_filter(
        self,
        filter: m.Filter | None = None,  # noqa: A002 - field of the wire
    ) -> list[str]:
        """Return all labels of bounding boxes of the files of a filter, sorted."""
        data_filter = filter_of(filter)
        return await self.read(lambda sql: labels.names(sql, data_filter, scope_of(sql, self.author, Role.OPERATOR)))

    # ---- datasets

    @allow(operator(ObjectKind.DATASET, "dataset_id"))
    async def add_binary_data_to_dataset_by_ids(
        self, dataset_id: str, binary_ids: Sequence[m.BinaryID] = (), binary_data_ids: Sequence[str] = ()
    ) -> None:
        """Add files to a dataset of their organization."""
        subjects = ids_of(binary_ids, binary_data_ids)

        def work(sql: Sql) -> None:
            self._require_operator(sql, subjects)
            datasets.add(sql, dataset_id, subjects)

        await self.change(work)

    @allow(operator(ObjectKind.DATASET, "dataset_id"))
    async def remove_binary_data_from_dataset_by_ids(
        self, dataset_id: str, binary_ids: Sequence[m.BinaryID] = (), binary_data_ids: Sequence[str] = ()
    ) -> None:
        """Remove files from a dataset; files that are not in it are ignored."""
        subjects = ids_of(binary_ids, binary_data_ids)
        await self.change(lambda sql: datasets.remove(sql, dataset_id, subjects))

    # ----

    def _require_operator(self, sql: Sql, subjects: Sequence[str]) -> None:
        for subject in subjects:
            self.require(sql, Role.OPERATOR, ObjectKind.FILE, subject)

    def _ids(self, sql: Sql, data_filter: m.Filter | None) -> list[str]:
        return files.ids(sql, filter_of(data_filter), scope_of(sql, self.author, Role.OPERATOR))
