"""The commands of `machine data`. Imports only click."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from command.groups import Commands
from command.output import json_option

Function = TypeVar("Function", bound=Callable[..., Any])


class Moment(click.ParamType[datetime]):
    """A time in ISO 8601. Without a time zone, it is local time."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> datetime:
        """Parse an aware time."""
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-01-31T12:00:00Z or 2026-01-31", param, context)


MOMENT: Final = Moment()
_FOLDER: Final = click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path), default=None
)


def selection_options(function: Function) -> Function:
    """Add the options that select readings."""
    options = (
        click.option(
            "--resource", default="", metavar="NAME", help="Only readings of this resource; simple or full name."
        ),
        click.option("--method", default="", metavar="NAME", help="Only readings of this method, such as Readings."),
        click.option("--tag", default="", metavar="TAG", help="Only readings with this tag."),
        click.option("--since", type=MOMENT, default=None, help="Only readings since this time."),
        click.option("--until", type=MOMENT, default=None, help="Only readings before this time."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine data ls
  machine data tail --resource thermometer
  machine data export --format csv -o readings.csv
  machine data export --resource camera --media pictures -o pictures.csv""",
)
def data() -> None:
    """Show and export captured data; no machine-server is needed.

    FOLDER is the capture folder: the attribute capture_dir of the data manager, by default `capture` in MACHINE_HOME or
    ~/.machine. All files, including those being written, are only read.
    """


@data.command(epilog="\b\nExamples:\n  machine data ls\n  machine data ls /var/lib/machine/capture --files --json")
@_FOLDER
@click.option("--files", is_flag=True, help="Show every file.")
@json_option
def ls(folder: Path | None, files: bool, as_json: bool) -> None:
    """List captured data, and files that are damaged or were left behind.

    The exit code is 1 if a file is damaged. A file that is cut off was being written when its process ended:
    machine-server recovers its complete readings at the next start.
    """
    from command.recordings.data_show import show

    raise click.exceptions.Exit(show(folder, files=files, as_json=as_json))


@data.command(epilog="\b\nExample:\n  machine data tail --resource thermometer -n 3")
@_FOLDER
@click.option("-n", "count", type=click.IntRange(min=1), default=10, show_default=True, help="Number of readings.")
@selection_options
def tail(folder: Path | None, count: int, **selection: Any) -> None:
    """Print the newest readings as JSON lines."""
    from command.recordings.data_show import tail as do

    do(folder, count, selection)


@data.command(
    epilog="""\b
Examples:
  machine data export --format csv -o readings.csv
  machine data export --format jsonl --since 2026-01-31 | jq .data
  machine data export --format parquet -o readings.parquet   needs pyarrow
  machine data export --resource camera --media pictures -o pictures.csv"""
)
@_FOLDER
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    default=None,
    help="By default, the suffix of OUT, else csv.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Write to this file instead of standard output.",
)
@click.option(
    "--media",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Write images, point clouds and sound into this folder.",
)
@selection_options
def export(folder: Path | None, kind: str | None, out: Path | None, media: Path | None, **selection: Any) -> None:
    """Write captured readings as CSV, JSON lines or Parquet.

    This includes the complete readings of damaged files, which are listed on standard error. Nothing is removed.
    """
    from command.recordings.data_show import export as do

    do(folder, kind, out, media, selection)
