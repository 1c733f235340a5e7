"""viam.app.dataset.v1.DatasetService: named collections of captured files."""

from __future__ import annotations

from collections.abc import Sequence

from cloud.domain.data import datasets
from cloud.domain.data.datasets import DatasetRecord
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, operator, owner
from cloud.services.common.base import Service, guarded
from cloud.services.data import data_messages as m
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError


@guarded
class DatasetService(Service):
    """A call of DatasetService. Datasets belong to an organization: roles at a location or machine give no access."""

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_dataset(
        self,
        name: str,
        organization_id: str,
        type: m.DatasetType | None = None,  # noqa: A002 - field of the wire
    ) -> str:
        """Create a dataset and return its id."""
        if type is m.DatasetType.SEQUENCE_DATA:
            raise MachineError("this cloud has no sequences; use datasets of files", kind=ErrorKind.UNSUPPORTED)
        return await self.change(lambda sql: datasets.create(sql, organization_id, name, self.now()))

    @allow(owner(ObjectKind.DATASET, "id"))
    async def delete_dataset(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a dataset but not its files."""
        await self.change(lambda sql: datasets.delete(sql, id))

    @allow(operator(ObjectKind.DATASET, "id"))
    async def rename_dataset(self, id: str, name: str) -> None:  # noqa: A002 - field of the wire
        """Rename a dataset."""
        await self.change(lambda sql: datasets.rename(sql, id, name))

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_datasets_by_organization_id(
        self,
        organization_id: str,
        type: m.DatasetType | None = None,  # noqa: A002 - field of the wire
    ) -> list[m.Dataset]:
        """Return the datasets of an organization, sorted by name."""
        if type is m.DatasetType.SEQUENCE_DATA:
            return []
        return await self.read(lambda sql: [_dataset(record) for record in datasets.datasets(sql, organization_id)])

    @allow(ROLE_ANYWHERE)
    async def list_datasets_by_ids(self, ids: Sequence[str]) -> list[m.Dataset]:
        """Return the datasets with these ids; NOT_FOUND names the first missing one."""

        def work(sql: Sql) -> list[m.Dataset]:
            for subject in ids:
                self.require(sql, Role.OPERATOR, ObjectKind.DATASET, subject)
            return [_dataset(datasets.dataset(sql, subject)) for subject in ids]

        return await self.read(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def merge_datasets(self, dataset_ids: Sequence[str], name: str, organization_id: str) -> str:
        """Create a dataset with the files of several datasets of the organization and return its id."""
        if not dataset_ids:
            raise MachineError("the call names no dataset", kind=ErrorKind.INVALID, remedy="pass at least one id")
        return await self.change(lambda sql: datasets.merge(sql, organization_id, dataset_ids, name, self.now()))


def _dataset(record: DatasetRecord) -> m.Dataset:
    return m.Dataset(record.id, record.name, record.organization_id, record.created)
