"""`machine cloud packages`: manages models, maps and other archives in the registry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from command.cloud.group import run_with_client, with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.times import local
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from rpc.api import ApiClient

PACKAGES: Final = "viam.app.packages.v1.PackageService"
TYPES: Final = ("archive", "ml_model", "module", "slam_map", "ml_training")


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine cloud packages upload net model.tar.gz --version 2026-11-21
  machine cloud packages ls --type ml_model""",
)
def packages() -> None:
    """Manage archives with versions. PACKAGE is `organization/name` or `namespace:name`.

    A machine uses a package by an entry in `packages`: {"name": "net", "package": PACKAGE, "version": "latest"}. In
    attributes, ${packages.net} is its folder.
    """


@packages.command("ls")
@click.option("--type", "kind", type=click.Choice(TYPES), help="Only packages of this type.")
@ORGANIZATION
@json_option
@with_client
async def list_command(client: ApiClient, kind: str | None, organization: str, as_json: bool) -> None:
    """List all files of the organization's packages and modules."""
    from support.text.terminal import table

    owner = await organization_of(client, organization)
    type_filter = {"type": kind.upper()} if kind else {}
    listed = await client.call(PACKAGES, "", "list_packages", organization_id=owner["id"], **type_filter)
    if as_json:
        print_json(listed)
        return
    rows = [
        [
            package["id"],
            package["info"]["version"],
            package["info"]["type"].lower(),
            package["info"]["platform"] or "any",
            local(package["created_on"]),
        ]
        for package in listed
    ]
    click.echo("\n".join(table(["PACKAGE", "VERSION", "TYPE", "PLATFORM", "UPLOADED"], rows)))


@packages.command()
@click.argument("name")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--version", required=True, help="Version; it cannot be uploaded again, even after it was deleted.")
@click.option("--type", "kind", type=click.Choice(TYPES), default="ml_model", show_default=True)
@click.option("--platform", default="any", show_default=True, help="Computers that can use it, such as linux/arm64.")
@ORGANIZATION
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def upload(name: str, file: Path, version: str, kind: str, platform: str, organization: str, quiet: bool) -> None:
    """Upload FILE, a .tar.gz, as a version of the package NAME, which is created if necessary."""
    size = file.stat().st_size

    async def work(client: ApiClient) -> None:
        from command.cloud.registry.upload import pieces

        owner = await organization_of(client, organization)
        with file.open("rb") as opened:
            created = await client.call(
                PACKAGES, "", "create_package", organization_id=owner["id"], name=name, version=version,
                type=kind.upper(), platform=platform, files=[{"name": file.name, "size": size}],
                pieces=pieces(opened, size, quiet=quiet),
            )  # fmt: skip
        if not quiet:
            click.echo(f"{created['id']} {created['version']} was uploaded")

    run_with_client(work, on_trio=True)


@packages.command()
@click.argument("package")
@click.argument("version")
@click.option("--platform", default="", help="Platform; by default the one that was uploaded first.")
@with_client
async def link(client: ApiClient, package: str, version: str, platform: str) -> None:
    """Print a URL for downloading a version of PACKAGE without a key for an hour, and its SHA-256."""
    request = {"id": package, "version": version, "include_url": True, "platform": platform or None}
    reply = await client.call(PACKAGES, "", "get_package", **request)
    click.echo(f"{reply['url']}\nsha256 {reply['checksum']}")


@packages.command()
@click.argument("package")
@click.argument("version")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_client
async def delete(client: ApiClient, package: str, version: str, yes: bool) -> None:
    """Delete a version of PACKAGE. Machines keep an installed version until they need another one."""
    if not yes:
        click.confirm(f"delete {package} {version}?", abort=True)
    await client.call(PACKAGES, "", "delete_package", id=package, version=version)
    click.echo(f"{package} {version} is deleted")
