"""Advising against items of the registry and versions of them, on the wire."""

from __future__ import annotations

from cloud.registry import access, deprecation, files, items
from cloud.registry.deprecation import Deprecation
from cloud.services.base import Service
from cloud.store.sql import Sql


class Deprecations(Service):
    """Machines keep what they use, and get it anew: the advice is for people."""

    async def deprecate_registry_item(self, item_id: str, message: str = "") -> None:
        """Advise against an item: lists leave it out, and it tells the message."""
        await self.write(lambda sql: deprecation.deprecate(sql, items.find(sql, item_id), message, self.now()))

    async def undeprecate_registry_item(self, item_id: str) -> None:
        """Take the advice back."""
        await self.write(lambda sql: deprecation.undeprecate(sql, items.find(sql, item_id), self.now()))

    async def deprecate_registry_item_version(self, item_id: str, version: str, message: str = "") -> None:
        """Advise against a version, which tells the message; NOT_FOUND."""
        await self.write(lambda sql: deprecation.deprecate(sql, items.find(sql, item_id), message, self.now(), version))

    async def undeprecate_registry_item_version(self, item_id: str, version: str) -> None:
        """Take the advice back; NOT_FOUND."""
        await self.write(lambda sql: deprecation.undeprecate(sql, items.find(sql, item_id), self.now(), version))

    async def list_deprecated_versions(self, item_id: str) -> dict[str, Deprecation]:
        """Versions of an item that are advised against: the published messages tell it of modules only. NOT_FOUND."""

        def work(sql: Sql) -> dict[str, Deprecation]:
            there = files.files(sql, access.find(sql, self.author, item_id).id)
            said = {one.version: deprecation.of_version([one]) for one in there}
            return {version: one for version, one in said.items() if one is not None}

        return await self.read(work)
