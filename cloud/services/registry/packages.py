"""viam.app.packages.v1.PackageService: archives with versions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import asdict

from cloud.documents.readable import check_readable
from cloud.domain.machines import machines
from cloud.domain.permissions import registry_access
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import READABLE, allow, operator, owner
from cloud.domain.registry import files as registered
from cloud.domain.registry import items
from cloud.domain.registry.files import File
from cloud.domain.registry.items import RegistryItem
from cloud.services.common.base import Service, guarded
from cloud.services.registry import registry_messages as m
from cloud.services.registry.registry import type_of
from cloud.services.registry.registry_shown import package_type
from cloud.services.registry.uploads import upload
from cloud.store.sql import Sql
from cloud.values.author import MACHINES
from schema import ErrorKind, MachineError

LINK: Final = timedelta(hours=1)  # validity of a link to a package


@guarded
class PackageService(Service):
    """A call of PackageService. Packages are named `organization/name` or `namespace:name`.

    Published methods that are missing here are UNIMPLEMENTED.
    """

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_package(
        self,
        organization_id: str,
        name: str,
        version: str,
        type: m.PackageType,  # noqa: A002 - field of the wire
        pieces: AsyncIterator[bytes],
        platform: str | None = None,
        files: Sequence[m.FileInfo] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> m.NewPackage:
        """Upload a version of a package, creating the package if necessary. An uploaded version cannot be changed."""
        kind = type_of(type)
        check_readable(metadata or {})
        item = await self.change(lambda sql: self._item(sql, organization_id, name, kind))
        place = registered.checked_place(item, version, platform or "")
        metadata_of_file = {"files": [asdict(file) for file in files], "package": dict(metadata or {})}
        await upload(self, item, place, pieces, {**item.metadata, **metadata_of_file})
        return m.NewPackage(item.package, version)

    def _item(self, sql: Sql, owner_id: str, name: str, kind: str) -> RegistryItem:
        try:
            item = items.find(sql, f"{owner_id}:{name}")
        except MachineError:
            return items.create(sql, owner_id, name, kind, self.now())
        if item.type != kind:
            raise MachineError(
                f"{item.wire_id} has the type {item.type}, not {kind}",
                kind=ErrorKind.PRECONDITION,
                remedy="choose another name",
            )
        return item

    @allow(owner(ObjectKind.ITEM, "id"))
    async def delete_package(
        self,
        id: str,  # noqa: A002 - field of the wire
        version: str,
        type: m.PackageType = m.PackageType.UNSPECIFIED,  # noqa: A002 - field of the wire
    ) -> None:
        """Delete a version for all platforms. Machines keep downloaded copies."""

        def work(sql: Sql) -> None:
            registered.delete_version(sql, _typed(items.find(sql, id), id, type), version, self.now())

        await self.change(work)

    @allow(READABLE)
    async def get_package(
        self,
        id: str,  # noqa: A002 - field of the wire
        version: str,
        include_url: bool | None = None,
        type: m.PackageType = m.PackageType.UNSPECIFIED,  # noqa: A002 - field of the wire
        platform: str | None = None,
    ) -> m.Package:
        """Return a version, which may be `latest`. The default platform is that of the calling machine, else that of
        the first upload."""

        def work(sql: Sql) -> tuple[RegistryItem, File]:
            item = _typed(registry_access.find(sql, self.author, id), id, type)
            item_files = registered.files(sql, item.id)
            reported: Mapping[str, Any] = {}
            if self.author.type in MACHINES:
                reported = machines.part(sql, self.author.name).reported
            computer = platform or reported.get("platform") or (item_files[0].platform if item_files else "")
            return item, registered.best(item_files, item, version, computer, reported.get("platform_tags") or ())

        item, file = await self.read(work)
        return self._package(item, file, with_url=include_url is not False)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_packages(
        self,
        organization_id: str,
        name: str | None = None,
        version: str | None = None,
        type: m.PackageType | None = None,  # noqa: A002 - field of the wire
        include_url: bool | None = None,
    ) -> list[m.Package]:
        """Return all files of an organization's packages, sorted by name and upload time."""

        def work(sql: Sql) -> list[tuple[RegistryItem, File]]:
            return [
                (item, file)
                for item in items.of_organization(sql, organization_id)
                if (not name or item.name == name) and (not type or item.type == type_of(type))
                for file in registered.files(sql, item.id)
                if not version or file.version == version
            ]

        return [self._package(item, file, with_url=bool(include_url)) for item, file in await self.read(work)]

    def _package(self, item: RegistryItem, file: File, *, with_url: bool) -> m.Package:
        info = m.PackageInfo(
            organization_id=item.organization_id,
            name=item.name,
            version=file.version,
            type=package_type(item.type),
            platform=file.platform,
            files=[m.FileInfo(**entry) for entry in file.metadata.get("files", [])],
            metadata=file.metadata.get("package", {}),
        )
        url = self.cloud.links.url(file.path, self.now() + LINK) if with_url else ""
        return m.Package(info, url, file.uploaded, file.digest, item.package)


def _typed(item: RegistryItem, item_id: str, kind: m.PackageType) -> RegistryItem:
    if kind is not m.PackageType.UNSPECIFIED and item.type != type_of(kind):
        raise MachineError(f"{item_id} has the type {item.type}", kind=ErrorKind.INVALID)
    return item
