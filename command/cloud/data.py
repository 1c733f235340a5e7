"""`machine cloud data`: lists, exports, deletes and uploads captured data in the cloud."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP, find, find_dataset, run_with_client, with_client, with_client_on_trio
from command.cloud.times import local
from command.groups import Commands
from command.output import json_option, print_json
from command.recordings.data import MOMENT
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from rpc.api import ApiClient

DATA: Final = "viam.app.data.v1.DataService"
SYNC: Final = "viam.app.datasync.v1.DataSyncService"
PIECE: Final = 64 * 1024  # bytes of a file per message
PAGE: Final = 100
_QUIET: Final = click.option("-q", "--quiet", is_flag=True, help="Print only ids, one per line.")
_SINCE: Final = click.option("--since", type=MOMENT, default=None, help="Only data since this time.")
_UNTIL: Final = click.option("--until", type=MOMENT, default=None, help="Only data before this time.")


@click.group(cls=Commands)
def data() -> None:
    """Manage data that machines have captured and uploaded: readings, pictures and other files.

    `machine data`, on a machine, shows data in its capture folder.
    """


@data.command("ls")
@click.argument("machine", default="")
@click.option("--resource", default="", metavar="NAME", help="Only data of this resource.")
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="Only data with this tag, or with any of several tags."
)
@click.option("--dataset", default="", metavar="DATASET", help="Only data in the dataset with this id or name.")
@_SINCE
@_UNTIL
@click.option(
    "-n", "count", type=click.IntRange(1), default=50, show_default=True, help="Number of pictures and files."
)
@json_option
@_QUIET
@with_client
async def list_command(
    client: ApiClient, /, machine: str, count: int, as_json: bool, quiet: bool, **chosen: Any
) -> None:
    """List pictures and files of MACHINE or of all machines. For readings, use `machine cloud data export`."""
    from support.text.terminal import table

    selection = await _filter(client, machine, **chosen)
    rows = []
    async for file in _files(client, selection, count):
        metadata = file["metadata"]
        if as_json:
            print_json(metadata)
        elif quiet:
            click.echo(metadata["binary_data_id"])
        else:
            capture = metadata["capture_metadata"]
            rows.append(
                [
                    local(metadata["time_received"]),
                    capture["robot_name"],
                    capture["component_name"],
                    metadata["file_name"],
                    str(metadata["file_size_bytes"]),
                    ", ".join(capture["tags"]),
                    metadata["binary_data_id"],
                ]
            )
    if not (as_json or quiet):
        click.echo("\n".join(table(["TIME", "MACHINE", "RESOURCE", "FILE", "BYTES", "TAGS", "ID"], rows)))


@data.command(
    epilog="""\b
Examples:
  machine cloud data export rover thermometer -o readings.csv
  machine cloud data export rover eye --media pictures"""
)
@click.argument("machine")
@click.argument("resource")
@click.option("--method", default="Readings", show_default=True, metavar="NAME", help="Captured method.")
@click.option("--api", "subtype", default="rdk:component:sensor", show_default=True, help="API of the resource.")
@_SINCE
@_UNTIL
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="New .csv or .jsonl file.")
@click.option(
    "--media", type=click.Path(file_okay=False, path_type=Path), help="Export pictures and files to this folder."
)
def export(
    machine: str,
    resource: str,
    method: str,
    subtype: str,
    since: datetime | None,
    until: datetime | None,
    out: Path | None,
    media: Path | None,
) -> None:
    """Export readings of RESOURCE as CSV or JSON lines, or its pictures; the default is JSON lines on the terminal."""
    if out is not None and (out.exists() or out.suffix not in (".csv", ".jsonl")):
        raise click.UsageError(f"{out} exists, or is not a .csv or .jsonl file: give a new file of such a name")

    if media is not None:
        media.mkdir(parents=True, exist_ok=True)

    async def work(client: ApiClient) -> None:
        if media is not None:
            selection = await _filter(client, machine, resource, (), "", since, until)
            click.echo(f"{await _save(client, selection, media)} files written to {media}")
            return
        part = await find(client, machine)
        request = {
            "part_id": part.id,
            "resource_name": resource,
            "resource_subtype": subtype,
            "method_name": method,
            "interval": _interval(since, until),
        }
        if out is None:
            await _lines(client, request, sys.stdout)
            return
        with out.open("x", newline="", encoding="utf-8") as file:
            if out.suffix == ".csv":
                count = await _csv(client, request, file)
            else:
                count = await _lines(client, request, file)
        click.echo(f"{count} readings written to {out}")

    run_with_client(work)


@data.command()
@click.argument("ids", nargs=-1)
@click.option(
    "--readings-older-than",
    "days",
    type=click.IntRange(1),
    metavar="DAYS",
    help="Delete readings of all machines that are older.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_client
async def delete(client: ApiClient, ids: tuple[str, ...], days: int | None, yes: bool) -> None:
    """Delete pictures and files by IDS, or old readings. This cannot be undone, and only owners can do it."""
    if bool(ids) == bool(days):
        raise click.UsageError("give either ids of files or --readings-older-than")
    if not yes:
        click.confirm(f"Delete {_counted(len(set(ids))) if ids else f'readings older than {days} days'}?", abort=True)
    if ids:
        count = await client.call(DATA, "", "delete_binary_data_by_ids", binary_data_ids=list(ids))
        click.echo(_counted(count) + " deleted")
        if missing := len(set(ids)) - count:
            raise MachineError(
                f"{missing} of {len(set(ids))} ids not found",
                kind=ErrorKind.NOT_FOUND,
                remedy="`machine cloud data ls -q` lists the ids",
            )
        return
    count = 0
    for organization in await client.call(APP, "", "list_organizations"):
        count += await client.call(
            DATA, "", "delete_tabular_data", organization_id=organization["id"], delete_older_than_days=days
        )
    click.echo(f"{count} readings deleted")


@data.command()
@click.argument("machine")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag of the files; can be repeated.")
@click.option("--dataset", "datasets", multiple=True, metavar="DATASET", help="Id or name of a dataset to add them to.")
@_QUIET
@with_client_on_trio
async def upload(
    client: ApiClient,
    machine: str,
    files: tuple[Path, ...],
    tags: tuple[str, ...],
    datasets: tuple[str, ...],
    quiet: bool,
) -> None:
    """Upload FILES as files of MACHINE, and print their ids."""
    part = await find(client, machine)
    dataset_ids = [await find_dataset(client, dataset) for dataset in datasets]
    for path in files:
        subject = await _upload(client, part.id, path, tags, dataset_ids)
        click.echo(subject if quiet else f"{path}  {subject}")


# ---- shared by several commands


async def _filter(
    client: ApiClient,
    machine: str,
    resource: str,
    tags: tuple[str, ...],
    dataset: str,
    since: datetime | None,
    until: datetime | None,
) -> dict[str, Any]:
    part = (await find(client, machine)).id if machine else None
    return {
        "part_id": part,
        "component_name": resource or None,
        "dataset_id": await find_dataset(client, dataset) if dataset else None,
        "tags_filter": {"type": "MATCH_BY_OR", "tags": list(tags)} if tags else None,
        "interval": _interval(since, until),
    }


def _interval(since: datetime | None, until: datetime | None) -> dict[str, datetime] | None:
    bounds = {name: moment for name, moment in (("start", since), ("end", until)) if moment is not None}
    return bounds or None


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


async def _files(
    client: ApiClient, selection: Mapping[str, Any], count: int | None = None, *, content: bool = False
) -> AsyncIterator[Mapping[str, Any]]:
    """Yield pictures and files, newest first, at most `count`. Requests them page by page."""
    page_token, remaining = "", count
    while remaining is None or remaining > 0:
        request = {
            "filter": _set(selection),
            "limit": min(PAGE, remaining) if remaining is not None else PAGE,
            "last": page_token,
            "sort_order": "ORDER_DESCENDING",
        }
        page = await client.call(DATA, "", "binary_data_by_filter", data_request=request, include_binary=content)
        if not page["data"]:
            return
        for file in page["data"]:
            yield file
        remaining, page_token = None if remaining is None else remaining - len(page["data"]), page["last"]


async def _save(client: ApiClient, selection: Mapping[str, Any], folder: Path) -> int:
    from runtime.parts import safe_part

    count = 0
    async for file in _files(client, selection, content=True):
        metadata = file["metadata"]
        name = safe_part(metadata["file_name"] or f"{metadata['binary_data_id']}{metadata['file_ext']}")
        target = folder / name
        if target.exists():
            target = folder / f"{safe_part(metadata['binary_data_id'])}-{name}"
        target.write_bytes(file["binary"])
        count += 1
    return count


async def _lines(client: ApiClient, request: Mapping[str, Any], out: IO[str]) -> int:
    from support.text.terminal import one_line

    count = 0
    async for reading in client.stream(DATA, "", "export_tabular_data", **request):
        out.write(
            one_line({"time": reading["time_captured"], "tags": reading["tags"], "data": reading["payload"]}) + "\n"
        )
        count += 1
    return count


async def _csv(client: ApiClient, request: Mapping[str, Any], out: IO[str]) -> int:
    """Write readings as CSV. Requests them twice, first for the columns, so that memory does not hold all of them."""
    import csv

    from runtime.parts import csv_cell, flattened
    from support.text import harmless_cell

    columns: dict[str, None] = {}
    async for reading in client.stream(DATA, "", "export_tabular_data", **request):
        columns.update(dict.fromkeys(name for name, _ in flattened(reading["payload"])))
    writer = csv.DictWriter(out, ["time", "tags", *sorted(columns)], restval="", extrasaction="ignore")
    writer.writerow({name: harmless_cell(name) for name in writer.fieldnames})
    count = 0
    async for reading in client.stream(DATA, "", "export_tabular_data", **request):
        facts = {
            "time": reading["time_captured"].isoformat().replace("+00:00", "Z"),
            "tags": harmless_cell(" ".join(reading["tags"])),
        }
        writer.writerow({**facts, **{name: csv_cell(value) for name, value in flattened(reading["payload"])}})
        count += 1
    return count


async def _upload(client: ApiClient, part: str, path: Path, tags: tuple[str, ...], datasets: Sequence[str]) -> str:
    reply = await client.call(
        SYNC,
        "",
        "file_upload",
        part_id=part,
        type="DATA_TYPE_FILE",
        file_name=path.name,
        file_extension=path.suffix,
        file_modify_time=_changed(path),
        tags=list(tags),
        dataset_ids=list(datasets),
        contents=_pieces(path),
    )
    return str(reply["binary_data_id"])


def _changed(path: Path) -> datetime:
    from datetime import UTC

    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _pieces(path: Path) -> Iterator[dict[str, bytes]]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield {"data": piece}


def _counted(count: int) -> str:
    return f"{count} file{'s' * (count != 1)}"
