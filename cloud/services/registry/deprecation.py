"""Deprecation of registry items and their versions."""

from __future__ import annotations

from cloud.domain.permissions import registry_access
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import READABLE, allow, owner
from cloud.domain.registry import deprecation, files, items
from cloud.domain.registry.deprecation import Deprecation
from cloud.services.common.base import Service
from cloud.store.sql import Sql


class Deprecations(Service):
    """Deprecations, which advise people only: machines can still use and download what is deprecated."""

    @allow(owner(ObjectKind.ITEM, "item_id"))
    async def deprecate_registry_item(self, item_id: str, message: str = "") -> None:
        """Deprecate an item: lists leave it out, and the item shows the message."""
        await self.change(lambda sql: deprecation.deprecate(sql, items.find(sql, item_id), message, self.now()))

    @allow(owner(ObjectKind.ITEM, "item_id"))
    async def undeprecate_registry_item(self, item_id: str) -> None:
        """Undo the deprecation of an item."""
        await self.change(lambda sql: deprecation.undeprecate(sql, items.find(sql, item_id), self.now()))

    @allow(owner(ObjectKind.ITEM, "item_id"))
    async def deprecate_registry_item_version(self, item_id: str, version: str, message: str = "") -> None:
        """Deprecate a version, which shows the message; NOT_FOUND if it does not exist."""
        await self.change(
            lambda sql: deprecation.deprecate(sql, items.find(sql, item_id), message, self.now(), version)
        )

    @allow(owner(ObjectKind.ITEM, "item_id"))
    async def undeprecate_registry_item_version(self, item_id: str, version: str) -> None:
        """Undo the deprecation of a version; NOT_FOUND if it does not exist."""
        await self.change(lambda sql: deprecation.undeprecate(sql, items.find(sql, item_id), self.now(), version))

    @allow(READABLE)
    async def list_deprecated_versions(self, item_id: str) -> dict[str, Deprecation]:
        """Return the deprecated versions of an item; NOT_FOUND. Published messages report them for modules only."""

        def work(sql: Sql) -> dict[str, Deprecation]:
            item_files = files.files(sql, registry_access.find(sql, self.author, item_id).id)
            by_version = {file.version: deprecation.of_version([file]) for file in item_files}
            return {version: value for version, value in by_version.items() if value is not None}

        return await self.read(work)
