"""The commands of `machine ftdc`. Imports only click."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from command.groups import Commands

Function = TypeVar("Function", bound=Callable[..., Any])
_FILES: Final = click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
_MATCH: Final = click.option(
    "--match",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Only quantities with matching names; * matches any text.",
)
_HOME: Final = click.option(
    "--home",
    envvar="MACHINE_HOME",
    type=click.Path(path_type=Path),
    default=None,
    show_envvar=True,
    help="Folder of machine-server's files.  [default: .machine in the home folder]",
)
_OUT: Final = click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE instead of standard output."
)


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine ftdc list
  machine ftdc show --match '*.RssMB'
  machine ftdc plot --match 'rpc.*' -o calls.svg
  machine ftdc export --format csv -o all.csv machine-server-2026-01-02T03-04-05Z.ftdc""",
)
def ftdc() -> None:
    """Read the diagnostic data of a machine: all its statistics, every second.

    machine-server records them unless it is started with -ftdc=false; the server need not be running. FILEs may be
    folders; without FILEs, the newest file is read. A file whose end is missing, as after a power cut, is read up to
    that point.
    """


@ftdc.command(name="list")
@_FILES
@_HOME
def list_(files: tuple[Path, ...], home: Path | None) -> None:
    """List files: start, duration, samples, quantities, bytes."""
    from command.recordings import ftdc_show

    ftdc_show.list_files(files, home)


@ftdc.command()
@_FILES
@_MATCH
@_HOME
def show(files: tuple[Path, ...], patterns: tuple[str, ...], home: Path | None) -> None:
    """Show the minimum, mean, maximum and last value of each quantity.

    Counters are shown as rates.
    """
    from command.recordings import ftdc_show

    ftdc_show.show(files, home, patterns)


@ftdc.command()
@_FILES
@_MATCH
@_OUT
@_HOME
def plot(files: tuple[Path, ...], patterns: tuple[str, ...], output: Path | None, home: Path | None) -> None:
    """Plot quantities over time, as SVG.

    Without --match, these are: processor time, memory, tasks, delay of the event loop, calls and unhealthy resources.
    """
    from command.recordings import ftdc_show

    ftdc_show.plot(files, home, patterns, output)


@ftdc.command()
@_FILES
@_MATCH
@click.option("--format", "form", type=click.Choice(["csv", "jsonl"]), default="csv", show_default=True)
@_OUT
@_HOME
def export(
    files: tuple[Path, ...], patterns: tuple[str, ...], form: str, output: Path | None, home: Path | None
) -> None:
    """Export all samples as recorded, with times in UTC."""
    from command.recordings import ftdc_show

    ftdc_show.export(files, home, patterns, form, output)
