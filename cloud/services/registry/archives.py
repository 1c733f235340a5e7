"""Downloads of the registry's archives."""

from __future__ import annotations

from cloud.domain.permissions import registry_access
from cloud.domain.registry import files, items
from cloud.domain.registry.files import File
from cloud.domain.registry.items import RegistryItem
from cloud.services.common.base import Cloud
from cloud.store.sql import Sql
from cloud.values.author import Author


async def archive(cloud: Cloud, author: Author, subject: str, *, linked: bool) -> tuple[RegistryItem, File]:
    """Return a file of the registry with its item; NOT_FOUND if the caller may not read it and has no signed link."""

    def work(sql: Sql) -> tuple[RegistryItem, File]:
        file = files.file(sql, subject)
        item = items.item(sql, file.item_id)
        return (item if linked else registry_access.readable(sql, author, item, subject)), file

    return await cloud.store.read(work)
