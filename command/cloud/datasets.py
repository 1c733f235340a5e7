"""`machine cloud datasets`: manages named sets of pictures and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from command.cloud.data import DATA
from command.cloud.group import APP, DATASETS, find_dataset, with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.times import local
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from rpc.api import ApiClient


@click.group(cls=Commands)
def datasets() -> None:
    """Manage named sets of pictures and files, for training and for export.

    DATASET is the id or the name of a dataset.
    """


@datasets.command("ls")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print only ids, one per line.")
@with_client
async def list_command(client: ApiClient, as_json: bool, quiet: bool) -> None:
    """List all datasets."""
    from support.text.terminal import table

    listed: list[dict[str, Any]] = []
    for organization in await client.call(APP, "", "list_organizations"):
        listed += await client.call(
            DATASETS, "", "list_datasets_by_organization_id", organization_id=organization["id"]
        )
    if as_json:
        print_json(listed)
    elif quiet:
        click.echo("".join(f"{dataset['id']}\n" for dataset in listed), nl=False)
    else:
        rows = [[dataset["name"], local(dataset["time_created"], seconds=False), dataset["id"]] for dataset in listed]
        click.echo("\n".join(table(["NAME", "CREATED", "ID"], rows)))


@datasets.command()
@click.argument("name")
@ORGANIZATION
@with_client
async def create(client: ApiClient, name: str, organization: str) -> None:
    """Create a dataset called NAME, and print its id."""
    organization_id = (await organization_of(client, organization))["id"]
    click.echo(await client.call(DATASETS, "", "create_dataset", name=name, organization_id=organization_id))


@datasets.command()
@click.argument("dataset")
@click.argument("name")
@with_client
async def rename(client: ApiClient, dataset: str, name: str) -> None:
    """Rename DATASET to NAME."""
    await client.call(DATASETS, "", "rename_dataset", id=await find_dataset(client, dataset), name=name)
    click.echo("renamed")


@datasets.command()
@click.argument("dataset")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_client
async def delete(client: ApiClient, dataset: str, yes: bool) -> None:
    """Delete DATASET. Its files are kept."""
    subject = await find_dataset(client, dataset)
    if not yes:
        click.confirm(f"Delete the dataset {dataset}? Its files stay.", abort=True)
    await client.call(DATASETS, "", "delete_dataset", id=subject)
    click.echo("deleted")


@datasets.command()
@click.argument("dataset")
@click.argument("ids", nargs=-1, required=True)
@with_client
async def add(client: ApiClient, dataset: str, ids: tuple[str, ...]) -> None:
    """Add files with these IDS to DATASET. `machine cloud data ls -q` prints ids."""
    subject = await find_dataset(client, dataset)
    await client.call(DATA, "", "add_binary_data_to_dataset_by_ids", dataset_id=subject, binary_data_ids=list(ids))
    click.echo("added")


@datasets.command()
@click.argument("dataset")
@click.argument("ids", nargs=-1, required=True)
@with_client
async def remove(client: ApiClient, dataset: str, ids: tuple[str, ...]) -> None:
    """Remove files with these IDS from DATASET. They are kept in the cloud."""
    subject = await find_dataset(client, dataset)
    await client.call(DATA, "", "remove_binary_data_from_dataset_by_ids", dataset_id=subject, binary_data_ids=list(ids))
    click.echo("removed")
