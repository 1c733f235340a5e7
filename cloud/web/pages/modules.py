"""`/modules`: modules and other packages, and their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import OF_FORM, READABLE, AccessRule, signed_in
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor
from cloud.services.registry.packages import PackageService
from cloud.services.registry.registry_messages import RegistryItem, Visibility
from cloud.web.common.site import author_of, fields, redirect, render, text_of
from schema import ErrorKind, MachineError

VISIBILITIES: Final = (
    ("PRIVATE", "this organization"),
    ("PUBLIC_UNLISTED", "anyone who knows its name"),
    ("PUBLIC", "every organization"),
)


@dataclass(frozen=True, slots=True)
class ModuleFileRow:
    """A file of a version."""

    version: str
    platform: str
    uploaded: datetime | None
    digest: str = ""


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /modules": READABLE,
    "POST /modules": OF_FORM,
    "GET /modules/{item}": READABLE,
    "POST /modules/{item}": signed_in("owners of the module"),
    "GET /modules/{item}/download": READABLE,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the registry."""
    pages = _Pages(cloud)
    return [
        Route("/modules", pages.index),
        Route("/modules", pages.create, methods=["POST"]),
        Route("/modules/{item}", pages.show),
        Route("/modules/{item}", pages.act, methods=["POST"]),
        Route("/modules/{item}/download", pages.download),
    ]


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """List the items of the caller's organizations and the public ones of others."""
        return await self._index(request)

    async def _index(self, request: Request, error: str = "") -> Response:
        author = author_of(request)
        app = AppService(self._cloud, author)
        organizations = await app.list_organizations()
        owned = await self._owned(request)
        registry_items = await app.list_registry_items(show_owned_deprecated=True)
        own_ids = {organization.id for organization in organizations}
        return render(
            request,
            "modules.html",
            400 if error else 200,
            groups=[
                (owner, [item for item in registry_items if item.organization_id == owner.id], owner.id in owned)
                for owner in organizations
            ],
            public=[item for item in registry_items if item.organization_id not in own_ids],
            newest=newest,
            error=error,
        )

    async def _owned(self, request: Request) -> set[str]:
        """Return the organizations whose registry the caller may change."""
        organizations = await Editor(self._cloud, author_of(request)).organizations()
        return {organization.id for organization, owned in organizations if owned}

    async def create(self, request: Request) -> Response:
        """Create a module, or set the organization's namespace."""
        form = await fields(request)
        app = AppService(self._cloud, author_of(request))
        organization = text_of(form, "organization")
        try:
            if text_of(form, "action") == "namespace":
                await app.update_organization(organization, public_namespace=text_of(form, "namespace"))
                return redirect("/modules")
            module = await app.create_module(organization, text_of(form, "name"))
        except MachineError as error:
            if error.kind in (ErrorKind.INVALID, ErrorKind.EXISTS, ErrorKind.PRECONDITION):
                return await self._index(request, str(error))
            raise
        return redirect(f"/modules/{module.module_id}")

    async def show(self, request: Request) -> Response:
        """Show an item with its versions."""
        return await self._show(request)

    async def _show(self, request: Request, error: str = "") -> Response:
        author = author_of(request)
        app = AppService(self._cloud, author)
        item = await app.get_registry_item(request.path_params["item"])
        rows = await self._rows(request, item)
        owner = item.organization_id in await self._owned(request)
        return render(
            request,
            "module.html",
            400 if error else 200,
            item=item,
            rows=rows,
            versions=list(dict.fromkeys(row.version for row in rows)),
            deprecated=await app.list_deprecated_versions(item.item_id),
            models=item.module_metadata.models if item.module_metadata is not None else [],
            entry=entry_of(item),
            owner=owner,
            visibilities=VISIBILITIES,
            path=f"/modules/{item.item_id}",
            error=error,
            quoted=quote,
        )

    async def _rows(self, request: Request, item: RegistryItem) -> Sequence[ModuleFileRow]:
        """Return the files of an item, newest first; digests are shown only to its own organization."""
        try:
            packages = await PackageService(self._cloud, author_of(request)).list_packages(
                item.organization_id, name=item.name
            )
        except MachineError:  # no role at the organization
            versions = item.module_metadata.versions if item.module_metadata is not None else []
            return [
                ModuleFileRow(version.version, file.platform, file.uploaded_at)
                for version in versions
                for file in version.files
            ]
        return [
            ModuleFileRow(package.info.version, package.info.platform or "any", package.created_on, package.checksum)
            for package in reversed(packages)
        ]

    async def act(self, request: Request) -> Response:
        """Handle a button of the page."""
        form = await fields(request)
        try:
            return redirect(await self._done(request, form))
        except MachineError as error:
            if error.kind in (ErrorKind.INVALID, ErrorKind.EXISTS, ErrorKind.PRECONDITION):
                return await self._show(request, str(error))
            raise

    async def _done(self, request: Request, form: FormData) -> str:
        """Run the action of a form and return the path of the next page."""
        item, action = request.path_params["item"], text_of(form, "action")
        app = AppService(self._cloud, author_of(request))
        if action == "settings":
            names: Mapping[str, Visibility] = Visibility.__members__
            await app.update_registry_item(
                item,
                description=text_of(form, "description"),
                visibility=names.get(text_of(form, "visibility"), Visibility.UNSPECIFIED),
            )
        elif action == "deprecate":
            await self._deprecate(app, item, text_of(form, "version"), text_of(form, "message"))
        elif action == "undeprecate":
            await self._undeprecate(app, item, text_of(form, "version"))
        elif action == "delete-version":
            await PackageService(self._cloud, author_of(request)).delete_package(item, text_of(form, "version"))
        elif action == "delete":
            await app.delete_registry_item(item)
            return "/modules"
        else:
            raise MachineError(f"there is no action {action[:50]!r}", kind=ErrorKind.INVALID)
        return f"/modules/{item}"

    async def _deprecate(self, app: AppService, item: str, version: str, message: str) -> None:
        if version:
            await app.deprecate_registry_item_version(item, version, message)
        else:
            await app.deprecate_registry_item(item, message)

    async def _undeprecate(self, app: AppService, item: str, version: str) -> None:
        if version:
            await app.undeprecate_registry_item_version(item, version)
        else:
            await app.undeprecate_registry_item(item)

    async def download(self, request: Request) -> Response:
        """Redirect to a file of an item."""
        query = request.query_params
        package = await PackageService(self._cloud, author_of(request)).get_package(
            request.path_params["item"], query.get("version", ""), platform=query.get("platform") or None
        )
        parts = urlsplit(package.url)
        return redirect(f"{parts.path}?{parts.query}")


def newest(item: RegistryItem) -> str:
    """Return the newest version of an item, or "" if its metadata has none."""
    metadata = item.module_metadata or item.ml_model_metadata or item.ml_training_metadata
    if metadata is None or not metadata.versions:
        return ""
    first = metadata.versions[0]
    return first if isinstance(first, str) else first.version


def entry_of(item: RegistryItem) -> str:
    """Return the configuration entry with which a machine uses an item."""
    if item.module_metadata is not None:
        base_fields = f'"name": "{item.name}", "type": "registry", "module_id": "{item.item_id}"'
        return f'{{"modules": [{{{base_fields}, "version": "latest"}}]}}'
    base_fields = f'"name": "{item.name}", "type": "{item.type.name.lower()}"'
    return f'{{"packages": [{{{base_fields}, "package": "{item.organization_id}/{item.name}", "version": "latest"}}]}}'
