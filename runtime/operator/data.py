"""`machine data`: what was captured on this computer. Only click is imported here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from runtime.operator.groups import Commands

Function = TypeVar("Function", bound=Callable[..., Any])


class Moment(click.ParamType[datetime]):
    """A time in ISO 8601; without a zone it is this computer's."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> datetime:
        """The time, aware."""
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


def selecting(function: Function) -> Function:
    """Adds the options that say which readings are wanted."""
    options = (
        click.option("--resource", default="", metavar="NAME", help="Only of this resource; simple or full name."),
        click.option("--method", default="", metavar="NAME", help="Only of this method, such as Readings."),
        click.option("--tag", default="", metavar="TAG", help="Only what has this tag."),
        click.option("--since", type=MOMENT, default=None, help="Only from this time on."),
        click.option("--until", type=MOMENT, default=None, help="Only before this time."),
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
    """Look at captured data and export it; no machine-server is needed.

    FOLDER is the capture folder: what the attribute capture_dir of the data manager says, by default `capture` in
    MACHINE_HOME or ~/.machine. Files are only read, also those that are being written.
    """


@data.command(epilog="\b\nExamples:\n  machine data ls\n  machine data ls /var/lib/machine/capture --files --json")
@_FOLDER
@click.option("--files", is_flag=True, help="Show every file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def ls(folder: Path | None, files: bool, as_json: bool) -> None:
    """List what was captured, and every file that is damaged or was left behind.

    Exits with 1 if a file is damaged. One that is cut off was being written when its process ended: machine-server
    closes it, with every whole reading, at its next start.
    """
    from runtime.operator.data_show import show

    raise click.exceptions.Exit(show(folder, files=files, as_json=as_json))


@data.command(epilog="\b\nExample:\n  machine data tail --resource thermometer -n 3")
@_FOLDER
@click.option("-n", "count", type=click.IntRange(min=1), default=10, show_default=True, help="How many.")
@selecting
def tail(folder: Path | None, count: int, **selection: Any) -> None:
    """Print the newest readings, a line of JSON for each."""
    from runtime.operator.data_show import tail as do

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
    "--format", "kind", type=click.Choice(["csv", "jsonl", "parquet"]), default=None, help="By default as OUT."
)
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False, path_type=Path), default=None, help="Standard output if absent."
)
@click.option(
    "--media",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Write images, point clouds and sound into this folder.",
)
@selecting
def export(folder: Path | None, kind: str | None, out: Path | None, media: Path | None, **selection: Any) -> None:
    """Write captured readings as CSV, JSON lines or Parquet.

    Every whole reading, also of damaged files, which are named on standard error. Nothing is removed.
    """
    from runtime.operator.data_show import export as do

    do(folder, kind, out, media, selection)
