"""Published calls for the registry: modules, models and training scripts by name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from cloud.domain.permissions import registry_access
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rules import READABLE, allow, owner
from cloud.domain.registry import files, items
from cloud.domain.registry.deprecation import of_item
from cloud.domain.registry.items import MODULE, TYPES, VISIBILITIES, RegistryItem
from cloud.services.common.base import Service
from cloud.services.registry import registry_messages as m
from cloud.services.registry.registry_shown import module_of, registry_item, update_of_model, update_of_module
from cloud.services.registry.uploads import upload
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError

PAGE: Final = 200  # items per reply


class Registry(Service):
    """Items of the registry, named `namespace:name`, or by organization id if there is no namespace."""

    # ---- items of any type

    @allow(READABLE)
    async def get_registry_item(
        self, item_id: str, include_markdown_documentation: bool | None = None
    ) -> m.RegistryItem:
        """Return an item that is public or belongs to an organization in which the caller has a role."""
        return await self.read(lambda sql: self._shown(sql, registry_access.find(sql, self.author, item_id)))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_registry_item(self, organization_id: str, name: str, type: m.PackageType) -> None:  # noqa: A002 - field of the wire
        """Create an item without versions, private to its organization."""
        kind = type_of(type)
        await self.change(lambda sql: items.create(sql, organization_id, name, kind, self.now()))

    @allow(owner(ObjectKind.ITEM, "item_id"))
    async def update_registry_item(
        self,
        item_id: str,
        type: m.PackageType = m.PackageType.UNSPECIFIED,  # noqa: A002 - field of the wire
        description: str = "",
        visibility: m.Visibility = m.Visibility.UNSPECIFIED,
        url: str | None = None,
        update_module_metadata: m.UpdateModuleMetadata | None = None,
        update_ml_model_metadata: m.UpdateMLModelMetadata | None = None,
        update_ml_training_metadata: m.UpdateMLTrainingMetadata | None = None,
        markdown_description: str | None = None,
        billing: Any = None,
    ) -> None:
        """Change an item; empty values leave a property unchanged. The type cannot be changed."""
        if billing is not None:
            raise MachineError("this cloud has no billing", kind=ErrorKind.UNSUPPORTED, remedy="leave out billing")

        def work(sql: Sql) -> None:
            item = items.find(sql, item_id)
            if type is not m.PackageType.UNSPECIFIED and type_of(type) != item.type:
                raise MachineError(
                    f"{item_id} has the type {item.type}, which cannot be changed", kind=ErrorKind.PRECONDITION
                )
            changes = {
                **update_of_module(update_module_metadata),
                **update_of_model(update_ml_model_metadata or update_ml_training_metadata),
                **({"markdown": markdown_description} if markdown_description is not None else {}),
            }
            items.update(
                sql,
                item,
                self.now(),
                visibility=visibility_of(visibility),
                url=url,
                description=description or None,
                metadata=changes,
            )

        await self.change(work)

    @allow(READABLE)
    async def list_registry_items(
        self,
        organization_id: str | None = None,
        types: Sequence[m.PackageType] = (),
        visibilities: Sequence[m.Visibility] = (),
        platforms: Sequence[str] = (),
        statuses: Sequence[m.RegistryItemStatus] = (),
        search_term: str | None = None,
        page_token: str | None = None,
        public_namespaces: Sequence[str] = (),
        include_markdown_documentation: bool | None = None,
        module_source_types: Sequence[int] = (),
        module_languages: Sequence[int] = (),
        show_owned_deprecated: bool | None = None,
    ) -> list[m.RegistryItem]:
        """Return the items of an organization and the public ones; by default, those of the caller's organizations.

        Deprecated items are left out; `show_owned_deprecated` includes those of the caller's organizations. A page has
        up to 200 items; `page_token` is the last item_id of the previous page. Filters by source and language of
        modules have no effect.
        """

        def work(sql: Sql) -> list[m.RegistryItem]:
            mine = registry_access.organizations_of(sql, self.author)
            matching = [
                item
                for item in self._visible(sql, organization_id)
                if (not types or item.type in {type_of(kind) for kind in types})
                and (not visibilities or item.visibility in {visibility_of(value) for value in visibilities})
                and (not public_namespaces or item.namespace in public_namespaces)
                and _matches(item, search_term or "")
                and (of_item(item) is None or (show_owned_deprecated and item.organization_id in mine))
            ]
            shown: list[m.RegistryItem] = []
            for item in sorted(matching, key=lambda item: item.wire_id):
                if page_token and item.wire_id <= page_token:
                    continue
                item_files = files.files(sql, item.id)
                status = m.RegistryItemStatus.PUBLISHED if item_files else m.RegistryItemStatus.IN_DEVELOPMENT
                if (statuses and status not in statuses) or (
                    platforms and not {file.platform for file in item_files} & set(platforms)
                ):
                    continue
                shown.append(registry_item(item, item_files))
            return shown[:PAGE]

        return await self.read(work)

    @allow(owner(ObjectKind.ITEM, "item_id"))
    async def delete_registry_item(self, item_id: str) -> None:
        """Delete an item with all its versions. Machines keep downloaded copies."""
        await self.change(lambda sql: items.delete(sql, items.find(sql, item_id), self.now()))

    @allow(owner(ObjectKind.ITEM, "item_id"))
    async def rename_registry_item(self, item_id: str, new_name: str) -> m.RegistryItem:
        """Rename an item; configurations must then use the new name."""

        def work(sql: Sql) -> m.RegistryItem:
            item = items.find(sql, item_id)
            items.rename(sql, item, new_name, self.now())
            return self._shown(sql, items.item(sql, item.id))

        return await self.change(work)

    # ---- modules

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_module(self, organization_id: str, name: str) -> m.NewModule:
        """Create a module without versions."""

        def work(sql: Sql) -> m.NewModule:
            module = items.create(sql, organization_id, name, MODULE, self.now())
            return m.NewModule(module.wire_id, self._page(module))

        return await self.change(work)

    @allow(owner(ObjectKind.ITEM, "module_id"))
    async def update_module(
        self,
        module_id: str,
        visibility: m.Visibility = m.Visibility.UNSPECIFIED,
        url: str = "",
        description: str = "",
        models: Sequence[m.Model] = (),
        entrypoint: str = "",
        first_run: str | None = None,
        apps: Sequence[Any] = (),
        markdown_description: str | None = None,
    ) -> str:
        """Change the given properties of a module; return the URL of its page. They apply to the next upload."""
        if apps:
            raise MachineError("this cloud hosts no applications", kind=ErrorKind.UNSUPPORTED, remedy="leave out apps")

        def work(sql: Sql) -> str:
            module = _module(items.find(sql, module_id), module_id)
            changes: dict[str, Any] = update_of_module(m.UpdateModuleMetadata(list(models), entrypoint))
            if first_run is not None:
                changes["first_run"] = first_run
            if markdown_description is not None:
                changes["markdown"] = markdown_description
            items.update(
                sql,
                module,
                self.now(),
                visibility=visibility_of(visibility),
                url=url or None,
                description=description or None,
                metadata=changes,
            )
            return self._page(module)

        return await self.change(work)

    @allow(owner(ObjectKind.ITEM, "module_id"))
    async def upload_module_file(
        self,
        module_id: str,
        version: str,
        pieces: AsyncIterator[bytes],
        platform: str = "",
        platform_tags: Sequence[str] = (),
    ) -> str:
        """Add a file to a version; return the URL of the module's page. An uploaded file cannot be changed."""
        module = await self.read(lambda sql: _module(items.find(sql, module_id), module_id))
        place = files.checked_place(module, version, platform, platform_tags)
        await upload(self, module, place, pieces, module.metadata)
        return self._page(module)

    @allow(READABLE)
    async def get_module(self, module_id: str, include_markdown_documentation: bool | None = None) -> m.Module:
        """Return a module that is public or belongs to an organization in which the caller has a role."""

        def work(sql: Sql) -> m.Module:
            module = _module(registry_access.find(sql, self.author, module_id), module_id)
            return module_of(module, files.files(sql, module.id))

        return await self.read(work)

    @allow(READABLE)
    async def list_modules(
        self, organization_id: str | None = None, include_markdown_documentation: bool | None = None
    ) -> list[m.Module]:
        """Return the modules of an organization and public ones; by default, those of the caller's organizations."""

        def work(sql: Sql) -> list[m.Module]:
            modules = [item for item in self._visible(sql, organization_id) if item.type == MODULE]
            return [
                module_of(item, files.files(sql, item.id)) for item in sorted(modules, key=lambda item: item.wire_id)
            ]

        return await self.read(work)

    # ---- shared

    def _visible(self, sql: Sql, organization_id: str | None) -> list[RegistryItem]:
        mine = registry_access.organizations_of(sql, self.author)
        selected = mine & {organization_id} if organization_id else mine
        if organization_id and not selected:
            self.require(sql, Role.OPERATOR, ObjectKind.ORGANIZATION, organization_id)
        own = {item.id: item for owner_id in selected for item in items.of_organization(sql, owner_id)}
        return list({**{item.id: item for item in items.public(sql)}, **own}.values())

    def _shown(self, sql: Sql, item: RegistryItem) -> m.RegistryItem:
        return registry_item(item, files.files(sql, item.id))

    def _page(self, item: RegistryItem) -> str:
        return f"{self.cloud.links.base}/modules/{item.wire_id}"


def type_of(kind: m.PackageType) -> str:
    """Return the database name of a type; INVALID if unspecified."""
    if kind is m.PackageType.UNSPECIFIED:
        raise MachineError("the type is missing", kind=ErrorKind.INVALID, remedy="set it, for example to MODULE")
    return TYPES[kind - 1]


def visibility_of(visibility: m.Visibility) -> str | None:
    """Return the database name of a visibility; None if unspecified."""
    return None if visibility is m.Visibility.UNSPECIFIED else VISIBILITIES[visibility - 1]


def _module(item: RegistryItem, item_id: str) -> RegistryItem:
    if item.type != MODULE:
        raise MachineError(f"{item_id} has the type {item.type}; a module is required", kind=ErrorKind.INVALID)
    return item


def _matches(item: RegistryItem, term: str) -> bool:
    words = re.split(r"\s+", term.strip().lower())
    return all(word in f"{item.wire_id} {item.description}".lower() for word in words)
