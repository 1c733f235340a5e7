"""viam.app.dataset.v1.DatasetService: named collections of captured files."""

from __future__ import annotations

from collections.abc import Sequence

from cloud import permissions
from cloud.access import Of, Role
from cloud.data import datasets
from cloud.data.datasets import DatasetRecord
from cloud.services import data_messages as m
from cloud.services.base import Service, guarded
from cloud.store.sql import Sql
from schema.errors import ErrorKind, MachineError


@guarded(permissions.DATASETS)
class DatasetService(Service):
    """One call. Datasets belong to an organization, so roles at a location or a machine reach none."""

    async def create_dataset(
        self,
        name: str,
        organization_id: str,
        type: m.DatasetType | None = None,  # noqa: A002 - field of the wire
    ) -> str:
        """A new dataset; its id."""
        if type is m.DatasetType.SEQUENCE_DATA:
            raise MachineError("sequences are not kept here; use datasets of files", kind=ErrorKind.UNSUPPORTED)
        return await self.write(lambda sql: datasets.create(sql, organization_id, name, self.now()))

    async def delete_dataset(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a dataset; its files stay."""
        await self.write(lambda sql: datasets.delete(sql, id))

    async def rename_dataset(self, id: str, name: str) -> None:  # noqa: A002 - field of the wire
        """Give it another name."""
        await self.write(lambda sql: datasets.rename(sql, id, name))

    async def list_datasets_by_organization_id(
        self,
        organization_id: str,
        type: m.DatasetType | None = None,  # noqa: A002 - field of the wire
    ) -> list[m.Dataset]:
        """All datasets of an organization, in order of name."""
        if type is m.DatasetType.SEQUENCE_DATA:
            return []
        return await self.read(lambda sql: [_dataset(one) for one in datasets.datasets(sql, organization_id)])

    async def list_datasets_by_ids(self, ids: Sequence[str]) -> list[m.Dataset]:
        """These datasets; NOT_FOUND names the first that is not there."""

        def work(sql: Sql) -> list[m.Dataset]:
            for subject in ids:
                self.require(sql, Role.OPERATOR, Of.DATASET, subject)
            return [_dataset(datasets.dataset(sql, subject)) for subject in ids]

        return await self.read(work)

    async def merge_datasets(self, dataset_ids: Sequence[str], name: str, organization_id: str) -> str:
        """A new dataset with the files of several of the organization; its id."""
        if not dataset_ids:
            raise MachineError("no dataset is named", kind=ErrorKind.INVALID, remedy="give at least one id")
        return await self.write(lambda sql: datasets.merge(sql, organization_id, dataset_ids, name, self.now()))


def _dataset(one: DatasetRecord) -> m.Dataset:
    return m.Dataset(one.id, one.name, one.organization_id, one.created)
