"""`machine-cloud doctor`: check that the database and files are intact and belong together."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Final

import click
import trio

from cloud.commands.doctor import DoctorReport, Examination, examine
from cloud.commands.options import EXIT_FAILED, EXIT_OK, Options
from schema import MachineError

_MAX_SHOWN: Final = 50  # problems in the output as text; --json has all


@click.command("doctor")
@click.option(
    "--repair", is_flag=True, help="Repair what is safe: permissions of files and folders, and the list of the trash."
)
@click.option(
    "--digests", is_flag=True, help="Read every file and compare its SHA-256; by default only sizes are compared."
)
@click.option(
    "--adopt-files",
    "adopt",
    is_flag=True,
    help="Assign the files in --files to this database, even if they are marked as those of another cloud, as newer, "
    "or not at all. Use this only if no other cloud uses them.",
)
@click.option(
    "--release-unnamed",
    "release",
    is_flag=True,
    help="Allow the cloud to remove all files without a database row, 7 days after it noticed them, however many.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_obj
def doctor_command(options: Options, /, *, as_json: bool, **requested: bool) -> None:
    """Check the database and the files, even while the cloud is running.

    Exits with 0 if there are no problems or all were repaired, else with 1.
    """
    try:
        report = trio.run(examine, options, Examination(**requested))
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
    if as_json:
        click.echo(json.dumps(asdict(report) | {"healthy": report.healthy}, indent=2))
    else:
        _show(report)
    sys.exit(EXIT_OK if report.healthy else EXIT_FAILED)


def _show(report: DoctorReport) -> None:
    for line in report.done:
        click.echo(line)
    for problem in report.problems[:_MAX_SHOWN]:
        ending = "repaired" if problem.repaired else problem.remedy
        click.echo(f"{problem.check}: {problem.message}: {ending}")
    if len(report.problems) > _MAX_SHOWN:
        click.echo(f"and {len(report.problems) - _MAX_SHOWN} more: see --json")
    click.echo(
        f"{report.files} files, {report.named} used by the database, {report.trash} in the trash, "
        f"{report.unnamed} unused that the cloud has not noticed yet"
    )
    click.echo("no problems" if not report.problems else f"{len(report.problems)} problems")
