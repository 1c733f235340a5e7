"""`machine-cloud files ...`: captured files and packages, from one place to another."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

import click
import trio

from cloud.blobs.choice import store_of
from cloud.blobs.copying import Copied, copy
from cloud.blobs.s3_place import Place, is_bucket, place_of
from cloud.options import EXIT_FAILED, Options
from schema.errors import MachineError

BUCKET: Final = "cloud.bucket"  # what the command line says of a bucket, in the context's meta
_EACH: Final = 100  # files between two lines that tell how far it is


def files_place(
    files: str, *, endpoint: str = "", region: str = "", credentials: Path | None = None, addressing: str = "auto"
) -> Path | Place:
    """The folder or the bucket that an option names."""
    if not is_bucket(files):
        return Path(files)
    try:
        return place_of(
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
    """Captured files and packages."""


@files_command.command("copy")
@click.option("--to", required=True, metavar="FOLDER|s3://BUCKET/PREFIX", help="Where they are to be, too.")
@click.pass_context
def copy_command(context: click.Context, to: str) -> None:
    """Copy the files of --files to another place, also while the cloud runs.

    What is there already is not copied again, so it may be interrupted and repeated. To move: copy, stop the cloud,
    copy again what has come meanwhile, and start it with the other --files.
    """
    options: Options = context.obj
    bucket: dict[str, Any] = context.meta[BUCKET]
    source, target = options.files, files_place(to, **bucket)
    if source == target:
        raise click.UsageError(f"{source} is where they are: name another place with --to")
    if isinstance(source, Path) and not source.is_dir():
        raise click.UsageError(f"there is no folder {source}: name the place of the files with --files or --data")
    try:
        done = trio.run(_copy, source, target)
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
    click.echo(
        f"{target} has the files of {source}: {done.files} copied ({done.size} bytes), {done.there} were there before"
    )


async def _copy(source: Path | Place, target: Path | Place) -> Copied:
    def progress(done: Copied) -> None:
        if not done.files % _EACH:
            click.echo(f"{done.files} files, {done.size / 1024**2:.0f} MiB", err=True)

    async with store_of(source) as one, store_of(target) as other:
        return await copy(one, other, progress)
