"""`machine-cloud files ...`: copy captured files and packages to another location, and list files of readings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import trio

from cloud.blobs import name_of
from cloud.blobs.choice import store_of
from cloud.blobs.s3_location import BucketLocation, is_bucket, parse_location
from cloud.commands.copying import CopyResult, copy
from cloud.commands.options import EXIT_FAILED, Options
from cloud.domain.data.segments import listed
from cloud.store.commands import opened_for_command
from cloud.values.times import moment_of
from schema import MachineError

BUCKET: Final = "cloud.bucket"  # key in the context's meta: the bucket options of the command line
_PROGRESS_EVERY: Final = 100  # files between two lines of progress
_AT_ONCE: Final = 1000  # segments that one transaction reads


def files_location(
    files: str, *, endpoint: str = "", region: str = "", credentials: Path | None = None, addressing: str = "auto"
) -> Path | BucketLocation:
    """Return the folder or bucket that an option names; UsageError if it is invalid."""
    if not is_bucket(files):
        return Path(files).absolute()
    try:
        return parse_location(
            files,
            endpoint=endpoint,
            region=region,
            addressing=addressing,
            credentials_file=credentials,
            environ=os.environ,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@click.group("files")
def files_command() -> None:
    """Manage captured files and packages."""


@files_command.command("copy")
@click.option("--to", required=True, metavar="FOLDER|s3://BUCKET/PREFIX", help="Folder or bucket to copy to.")
@click.pass_context
def copy_command(context: click.Context, to: str) -> None:
    """Copy the files of --files to another location, even while the cloud is running.

    Files that exist there are not copied again, so the command can be interrupted and repeated. To move the files:
    copy, stop the cloud, copy again what was added in the meantime, and start the cloud with the new --files.
    """
    options: Options = context.obj
    bucket: dict[str, Any] = context.meta[BUCKET]
    source, target = options.files, files_location(to, **bucket)
    if source == target:
        raise click.UsageError(f"the files are already in {source}: set --to to another location")
    if isinstance(source, Path) and not source.is_dir():
        raise click.UsageError(f"there is no folder {source}: set --files or --data to the location of the files")
    try:
        done = trio.run(_copy, source, target)
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
    click.echo(
        f"copied {done.files} files ({done.size} bytes) from {source} to {target}; {done.present} were there already"
    )


async def _copy(source: Path | BucketLocation, target: Path | BucketLocation) -> CopyResult:
    def progress(done: CopyResult) -> None:
        if not done.files % _PROGRESS_EVERY:
            click.echo(f"{done.files} files, {done.size / 1024**2:.0f} MiB", err=True)

    async with store_of(source) as source_store, store_of(target) as target_store:
        return await copy(source_store, target_store, progress)


@files_command.command("readings")
@click.option("--organization", default="", metavar="ID", help="Only files of this organization.")
@click.option("--component", default="", metavar="NAME", help="Only files of components with this name.")
@click.pass_obj
def readings_command(options: Options, organization: str, component: str) -> None:
    """List the Parquet files of readings, for other programs, even while the cloud is running.

    Prints a JSON object in each line: the file's path or s3:// address, its source, readings, size in bytes, and the
    times of its first and last reading. Columns `requested`, `received` and `synced` of a file are microseconds since
    1970 (UTC). Readings of the last hours are in the database; see --seal-after.
    """
    chosen = {"organization": organization, "component": component}
    try:
        trio.run(_list_readings, options, {name: value for name, value in chosen.items() if value})
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)


async def _list_readings(options: Options, chosen: Mapping[str, str]) -> None:
    after = 0
    if not options.postgres and not options.database.is_file():  # opening it would create it
        raise MachineError(f"there is no database {options.database}", remedy="set --data to the folder of the cloud")
    async with opened_for_command(options.database, options.postgres) as store:
        while rows := await store.read(partial(listed.described, after=after, most=_AT_ONCE)):
            for row in rows:
                if all(row[name] == value for name, value in chosen.items()):
                    click.echo(json.dumps(_described(options.files, row), ensure_ascii=False))
            after = rows[-1]["number"]


def _described(files: Path | BucketLocation, row: Mapping[str, Any]) -> dict[str, Any]:
    name = name_of(row["blob"])
    place = f"s3://{files.bucket}/{files.prefix}{name}" if isinstance(files, BucketLocation) else str(files / name)
    about = {key: value for key, value in row.items() if key not in ("number", "blob", "first", "last")}
    times = {key: moment_of(row[key]).isoformat() for key in ("first", "last")}
    return {"file": place, **about, **times}
