"""`machine cloud datasets`: manages named sets of pictures and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.data import DATA
from command.cloud.group import APP, run_with_client
from command.groups import Commands

if TYPE_CHECKING:
    from rpc.api.client import ApiClient

DATASETS: Final = "viam.app.dataset.v1.DatasetService"
_ORGANIZATION: Final = click.option(
    "--organization", default="", metavar="ID", help="Needed if the key has access to several."
)


@click.group(cls=Commands)
def datasets() -> None:
    """Manage named sets of pictures and files, for training and for export."""


@datasets.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON, for programs.")
@click.option("-q", "--quiet", is_flag=True, help="Print only ids, one per line.")
def list_command(as_json: bool, quiet: bool) -> None:
    """List all datasets."""

    async def work(client: ApiClient) -> None:
        from runtime.engine.views.tables import one_line, table

        listed: list[dict[str, Any]] = []
        for organization in await client.call(APP, "", "list_organizations"):
            listed += await client.call(
                DATASETS, "", "list_datasets_by_organization_id", organization_id=organization["id"]
            )
        if as_json:
            click.echo(one_line(listed))
        elif quiet:
            click.echo("".join(f"{dataset['id']}\n" for dataset in listed), nl=False)
        else:
            rows = [[dataset["name"], f"{dataset['time_created']:%Y-%m-%d %H:%M}", dataset["id"]] for dataset in listed]
            click.echo("\n".join(table(["NAME", "CREATED (UTC)", "ID"], rows)))

    run_with_client(work, as_json=as_json)


@datasets.command()
@click.argument("name")
@_ORGANIZATION
def create(name: str, organization: str) -> None:
    """Create a dataset called NAME, and print its id."""

    async def work(client: ApiClient) -> None:
        organization_id = organization
        if not organization_id:
            (organization_id, *others) = [
                organization["id"] for organization in await client.call(APP, "", "list_organizations")
            ]
            if others:
                raise click.UsageError("the key has access to several organizations: give --organization")
        click.echo(await client.call(DATASETS, "", "create_dataset", name=name, organization_id=organization_id))

    run_with_client(work)


@datasets.command()
@click.argument("dataset")
@click.argument("name")
def rename(dataset: str, name: str) -> None:
    """Rename the dataset with the id DATASET to NAME."""

    async def work(client: ApiClient) -> None:
        await client.call(DATASETS, "", "rename_dataset", id=dataset, name=name)
        click.echo("renamed")

    run_with_client(work)


@datasets.command()
@click.argument("dataset")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(dataset: str, yes: bool) -> None:
    """Delete the dataset with the id DATASET. Its files are kept."""
    if not yes:
        click.confirm(f"Delete the dataset {dataset}? Its files stay.", abort=True)

    async def work(client: ApiClient) -> None:
        await client.call(DATASETS, "", "delete_dataset", id=dataset)
        click.echo("deleted")

    run_with_client(work)


@datasets.command()
@click.argument("dataset")
@click.argument("ids", nargs=-1, required=True)
def add(dataset: str, ids: tuple[str, ...]) -> None:
    """Add files with these IDS to DATASET. `machine cloud data ls -q` prints ids."""
    _change("add_binary_data_to_dataset_by_ids", dataset, ids, "added")


@datasets.command()
@click.argument("dataset")
@click.argument("ids", nargs=-1, required=True)
def remove(dataset: str, ids: tuple[str, ...]) -> None:
    """Remove files with these IDS from DATASET. They are kept in the cloud."""
    _change("remove_binary_data_from_dataset_by_ids", dataset, ids, "removed")


def _change(method: str, dataset: str, ids: tuple[str, ...], word: str) -> None:
    async def work(client: ApiClient) -> None:
        await client.call(DATA, "", method, dataset_id=dataset, binary_data_ids=list(ids))
        click.echo(word)

    run_with_client(work)
