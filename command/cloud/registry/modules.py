"""`machine cloud modules`: manages modules in the registry and their versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP, run_with_client, with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.registry.packages import PACKAGES
from command.cloud.times import local
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpc.api import ApiClient
    from runtime.sdk import Meta

_YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")
_MODULE: Final = click.argument("module")
_VERSION: Final = click.option("--version", default="", help="Only this version; by default all versions.")
_QUIET: Final = click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
_SOURCE: Final = click.argument("source", type=click.Path(exists=True, path_type=Path))


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine cloud modules namespace acme
  machine cloud modules create rover-arm
  machine cloud modules upload rover-arm --version 1.0.0
  machine cloud modules versions acme:rover-arm""",
)
def modules() -> None:
    """Manage modules in the registry. MODULE is an id, `namespace:name`.

    A machine uses a module by an entry in `modules`: {"name": "arm", "type": "registry", "module_id": "acme:rover-arm",
    "version": "latest"}.
    """


@modules.command("ls")
@json_option
@with_client
async def list_command(client: ApiClient, as_json: bool) -> None:
    """List modules of your organizations, and public modules."""
    from support.text.terminal import table

    listed = await client.call(APP, "", "list_modules")
    if as_json:
        print_json(listed)
        return
    rows = [
        [
            module["module_id"],
            module["versions"][0]["version"] if module["versions"] else "none",
            module["visibility"].lower(),
            _advice(module) or module["description"],
        ]
        for module in listed
    ]
    click.echo("\n".join(table(["MODULE", "NEWEST", "VISIBILITY", "DESCRIPTION"], rows)))


@modules.command()
@click.argument("module")
@json_option
@with_client
async def versions(client: ApiClient, module: str, as_json: bool) -> None:
    """List the versions of MODULE, newest first, with their platforms."""
    from support.text.terminal import clean, table

    module_info = await client.call(APP, "", "get_module", module_id=module)
    listed = module_info["versions"]
    if as_json:
        print_json(listed)
        return
    if advice := _advice(module_info):
        click.echo(f"{module} is {clean(advice)}", err=True)
    rows = [
        [
            version["version"],
            file["platform"],
            local(file["uploaded_at"]),
            _advice(version),
        ]
        for version in listed
        for file in version["files"]
    ]
    click.echo("\n".join(table(["VERSION", "PLATFORM", "UPLOADED", "ADVICE"], rows)))


def _advice(item: Mapping[str, Any]) -> str:
    """Return the deprecation of a module or version; empty if it is not deprecated."""
    status = item.get("deprecated_status")
    return f"deprecated: {status['message']}".removesuffix(": ") if status else ""


@modules.command()
@click.argument("namespace")
@ORGANIZATION
@with_client
async def namespace(client: ApiClient, namespace: str, organization: str) -> None:
    """Set the NAMESPACE of the organization, which is part of its modules' ids. This is possible only once."""
    owner = await organization_of(client, organization)
    await client.call(APP, "", "update_organization", organization_id=owner["id"], public_namespace=namespace)
    click.echo(f"the ids of the modules of {owner['name']} begin with {namespace}:")


@modules.command()
@click.argument("name")
@ORGANIZATION
@with_client
async def create(client: ApiClient, name: str, organization: str) -> None:
    """Create a module called NAME without versions, and print its id."""
    owner = await organization_of(client, organization)
    created = await client.call(APP, "", "create_module", organization_id=owner["id"], name=name)
    click.echo(created["module_id"])


@modules.command()
@_SOURCE
def update(source: Path) -> None:
    """Update models, description and visibility in the registry from meta.json of SOURCE, a folder or an archive."""
    from command.cloud.registry.upload import module_archive

    with module_archive(source) as (meta, _):

        async def work(client: ApiClient) -> None:
            await _update_metadata(client, meta)
            click.echo(f"{meta.module_id} was updated")

        run_with_client(work)


@modules.command(
    epilog="""\b
Examples:
  machine cloud modules upload rover-arm --version 1.0.0
  machine cloud modules upload dist/rover-arm.tar.gz --version 1.0.1-rc.1 --platform linux/arm64"""
)
@_SOURCE
@click.option(
    "--version",
    required=True,
    help="A semantic version, such as 1.2.3. It cannot be uploaded again, even after it was deleted.",
)
@click.option(
    "--platform", default="", help="Computers that can use it, such as linux/arm64; by default as in meta.json."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only for computers that have this tag.")
@_QUIET
def upload(source: Path, version: str, platform: str, tags: tuple[str, ...], quiet: bool) -> None:
    """Upload SOURCE, the folder of a module or its archive, as a new version.

    The command first checks that the module's programs exist. Models, description and platforms are taken from
    meta.json: the same archive is uploaded for each platform in `build.arch`, or for any computer if there is none. An
    archive with compiled programs needs --platform if meta.json names several. Machines that use this version, or
    `latest`, get it within moments.
    """
    from command.cloud.registry.upload import module_archive, pieces

    with module_archive(source) as (meta, archive):
        platforms = [platform] if platform else _platforms(meta, archive)

        async def work(client: ApiClient) -> None:
            await _update_metadata(client, meta)
            size = archive.stat().st_size
            for arch in platforms:
                with archive.open("rb") as file:
                    await client.call(
                        APP, "", "upload_module_file", module_id=meta.module_id, version=version, platform=arch,
                        platform_tags=list(tags), pieces=pieces(file, size, quiet=quiet),
                    )  # fmt: skip
                if not quiet:
                    click.echo(f"{meta.module_id} {version} for {arch} was uploaded ({size / 1024:.1f} KiB)")

        run_with_client(work, on_trio=True)


def _platforms(meta: Meta, archive: Path) -> list[str]:
    """Return the platforms in meta.json. Raises click.UsageError for several ones if `archive` has native programs."""
    from command.cloud.registry.upload import native_file

    platforms = [*dict.fromkeys(meta.build.arch)] or ["any"]
    if len(platforms) > 1 and (name := native_file(archive)):
        raise click.UsageError(
            f"{name} contains native code for one platform: give it with --platform; "
            f"meta.json lists {', '.join(platforms)}"
        )
    return platforms


async def _update_metadata(client: ApiClient, meta: Meta) -> None:
    from schema import ErrorKind, MachineError

    models = [{"api": model.api, "model": model.model, "description": model.short_description} for model in meta.models]
    try:
        await client.call(
            APP,
            "",
            "update_module",
            module_id=meta.module_id,
            visibility=meta.visibility.upper(),
            url=meta.url,
            description=meta.description,
            models=models,
            entrypoint=meta.entrypoint,
            first_run=meta.first_run or None,
        )
    except MachineError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        remedy = f"create it with `machine cloud modules create {meta.name}`"
        raise click.ClickException(f"your organizations have no module {meta.module_id}: {remedy}") from None


@modules.command()
@_MODULE
@_VERSION
@click.option("--message", default="", metavar="TEXT", help="The reason, or what to use instead.")
@_QUIET
@with_client
async def deprecate(client: ApiClient, module: str, version: str, message: str, quiet: bool) -> None:
    """Deprecate MODULE, or another item of the registry, or one version of it.

    Machines that use it keep it. Lists omit it, and the item and the configuration editor show the message.
    """
    await client.call(
        APP, "", f"deprecate_{_kind_of(version)}", item_id=module, **_version_argument(version), message=message
    )
    if not quiet:
        click.echo(f"{module} {version}".rstrip() + " is deprecated")


@modules.command()
@_MODULE
@_VERSION
@_QUIET
@with_client
async def undeprecate(client: ApiClient, module: str, version: str, quiet: bool) -> None:
    """Undo `deprecate` for MODULE, or for one version of it."""
    await client.call(APP, "", f"undeprecate_{_kind_of(version)}", item_id=module, **_version_argument(version))
    if not quiet:
        click.echo(f"{module} {version}".rstrip() + " is not deprecated")


def _kind_of(version: str) -> str:
    return "registry_item_version" if version else "registry_item"


def _version_argument(version: str) -> dict[str, str]:
    return {"version": version} if version else {}


@modules.command()
@_MODULE
@_VERSION
@_YES
@with_client
async def delete(client: ApiClient, module: str, version: str, yes: bool) -> None:
    """Delete MODULE or one version of it. Machines keep an installed version until they need another one."""
    target = f"{module} {version}".strip()
    if not yes:
        click.confirm(f"delete {target}?", abort=True)
    if version:
        await client.call(PACKAGES, "", "delete_package", id=module, version=version, type="MODULE")
    else:
        await client.call(APP, "", "delete_registry_item", item_id=module)
    click.echo(f"{target} is deleted")
