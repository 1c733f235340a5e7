"""`machine-cloud doctor`: check that the database and files are intact and belong together."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Final

import click
import trio

from cloud.commands.doctor import Report, Wanted, examine
from cloud.commands.options import EXIT_FAILED, EXIT_OK, Options
from schema.errors import MachineError

_SHOWN: Final = 50  # problems in the output as text; --json has all


@click.command("doctor")
@click.option("--repair", is_flag=True, help="Repair what is safe: modes of files and folders, notes of the trash.")
@click.option("--digests", is_flag=True, help="Read every file and compare its SHA-256; else only sizes are compared.")
@click.option(
    "--adopt-files",
    "adopt",
    is_flag=True,
    help="Make the files in --files those of this database, although they are marked as another cloud's, as newer, or "
    "not at all. Only if you know that no other cloud uses them.",
)
@click.option(
    "--release-unnamed",
    "release",
    is_flag=True,
    help="Let the cloud remove all files that no row names, 7 days after it noticed them, however many they are.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_obj
def doctor_command(options: Options, /, *, as_json: bool, **given: bool) -> None:
    """Check the database and the files, even while the cloud is running.

    Exits with 0 if there are no problems or all were repaired, else with 1.
    """
    try:
        report = trio.run(examine, options, Wanted(**given))
    except MachineError as error:
        click.echo(f"machine-cloud: {error}", err=True)
        sys.exit(EXIT_FAILED)
    if as_json:
        click.echo(json.dumps(asdict(report) | {"healthy": report.healthy}, indent=2))
    else:
        _show(report)
    sys.exit(EXIT_OK if report.healthy else EXIT_FAILED)


def _show(report: Report) -> None:
    for line in report.done:
        click.echo(line)
    for problem in report.problems[:_SHOWN]:
        ending = "repaired" if problem.repaired else problem.remedy
        click.echo(f"{problem.check}: {problem.message}: {ending}")
    if len(report.problems) > _SHOWN:
        click.echo(f"and {len(report.problems) - _SHOWN} more: see --json")
    click.echo(
        f"{report.files} files, {report.named} named by the database, {report.trash} in the trash, "
        f"{report.unnamed} that nothing names and that the cloud has not noticed yet"
    )
    click.echo("nothing is wrong" if not report.problems else f"{len(report.problems)} problems")
