"""Downloads of metadata and files by machines: the route has checked that the caller may act for the part."""

from __future__ import annotations

from cloud.domain.machines import machines
from cloud.domain.releases import files, repository
from cloud.domain.releases.files import ReleaseFile
from cloud.domain.releases.repository import Document
from cloud.services.common.base import Cloud
from cloud.store.sql import Sql


async def metadata_for(cloud: Cloud, part: str, name: str) -> Document:
    """Return a metadata file of the organization that owns a part; NOT_FOUND."""
    return await cloud.store.read(lambda sql: repository.document(sql, machines.part(sql, part).organization_id, name))


async def target_for(cloud: Cloud, part: str, path: str) -> ReleaseFile:
    """Return the file of a target of the organization that owns a part; NOT_FOUND."""
    return await cloud.store.read(
        lambda sql: repository.target_file(sql, machines.part(sql, part).organization_id, path)
    )


async def linked_file(cloud: Cloud, subject: str) -> ReleaseFile:
    """Return a file by its id, for a link whose signature was checked; NOT_FOUND."""

    def work(sql: Sql) -> ReleaseFile:
        return files.file(sql, subject)

    return await cloud.store.read(work)
