"""The commands of `machine agent`. Imports only click."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from command.groups import Commands

if TYPE_CHECKING:
    from agent.diagnosis.checks import Device
    from agent.layout import Layout

T = TypeVar("T")

PROGRAMS: Final = ("machine-agent", "machine-server")
EXIT_NO_AGENT: Final = 3
_PATH: Final = click.Path(path_type=Path)


class NoAgent(click.ClickException):
    """machine-agent does not run. click prints the message on standard error."""

    exit_code = EXIT_NO_AGENT


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  sudo machine agent status      versions, updates, and what they wait for
  sudo machine agent check       what is wrong with this device, and what to do
  sudo machine agent logs -f     messages of machine-agent and machine-server""",
)
@click.option(
    "--root", type=_PATH, envvar="MACHINE_ROOT", default=Path("/opt/machine"), show_default=True, metavar="DIRECTORY",
    help="Folder of the installation.",
)  # fmt: skip
@click.option(
    "--run", "run_folder", type=_PATH, default=None, metavar="DIRECTORY",
    help="Folder of the control socket. [default: /run/machine, or `run` in another folder of the installation]",
)  # fmt: skip
@click.pass_context
def agent(context: click.Context, root: Path, run_folder: Path | None) -> None:
    """Show, check and control machine-agent on this computer."""
    from agent.layout import Layout

    usual = Layout()
    context.obj = Layout(root, run_folder or (usual.run if root == usual.root else root / "run"))


@agent.command(epilog="\b\nExample:\n  sudo machine agent status --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_obj
def status(layout: Layout, as_json: bool) -> None:
    """Show the versions, the updates in progress and what they wait for, and problems.

    Exit code 3: machine-agent does not run; `machine agent check` says why.
    """
    report = _last(layout, "status")
    if as_json:
        click.echo(json.dumps(report))
        return
    from command.agent.show import status_lines

    for line in status_lines(report):
        click.echo(line)


@agent.command(epilog="\b\nExample:\n  sudo machine agent check")
@click.option("--config", type=_PATH, default=Path("/etc/machine.json"), show_default=True, help="Credentials file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_obj
def check(layout: Layout, config: Path, as_json: bool) -> None:
    """Check clock, DNS, cloud, disk, units, control groups, credentials, wifi and ports, and name remedies.

    Changes nothing, and needs no running agent. Exit code 1: at least one check has failed.
    """
    from agent.diagnosis.finding import Level, table

    findings = _checked(_device(layout, config))
    if as_json:
        click.echo(json.dumps([{**finding._asdict(), "level": finding.level.value} for finding in findings]))
    else:
        click.echo(table(findings), nl=False)
    if any(finding.level is Level.FAIL for finding in findings):
        sys.exit(1)


@agent.command(epilog="\b\nExample:\n  sudo machine agent bundle rover.tar.gz")
@click.argument("file", type=_PATH, required=False)
@click.option("--config", type=_PATH, default=Path("/etc/machine.json"), show_default=True, help="Credentials file.")
@click.pass_obj
def bundle(layout: Layout, file: Path | None, config: Path) -> None:
    """Write an archive for supporters: checks, state, logs and system facts, without secrets.

    The default for FILE is machine-bundle-TIME.tar.gz in the current folder. An existing file is never replaced.
    """
    import time

    from agent.diagnosis.bundle import contents, write
    from agent.diagnosis.finding import table
    from schema.errors import MachineError

    path = file or Path(time.strftime("machine-bundle-%Y%m%d-%H%M%S.tar.gz"))
    device = _device(layout, config)
    click.echo("Running the checks", err=True)
    findings = table(_checked(device))
    try:
        report = json.dumps(_run(_ask(layout, "status"))[-1]).encode()
    except MachineError:
        report = None
    click.echo("Collecting logs and facts", err=True)
    try:
        count = write(path, contents(device, findings, report))
    except FileExistsError:
        raise click.ClickException(f"{path} exists: choose another name") from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None
    click.echo(f"{path}: {count} entries. Secrets are masked; look at it before you send it.")


@agent.command(epilog="\b\nExample:\n  sudo machine agent update")
@click.pass_obj
def update(layout: Layout) -> None:
    """Ask the cloud for settings and versions now, instead of at the next regular time."""
    _last(layout, "check")
    click.echo("machine-agent asks the cloud now: `machine agent status` shows the result")


@agent.command(epilog="\b\nExample:\n  sudo machine agent restart")
@click.pass_obj
def restart(layout: Layout) -> None:
    """Restart machine-server now, without waiting for maintenance."""
    _last(layout, "restart")
    click.echo("machine-server was stopped and is started again: `machine agent status` shows the result")


@agent.command(
    epilog="\b\nExamples:\n  sudo machine agent logs -n 200\n  sudo machine agent logs -f --program machine-server"
)
@click.option("-f", "--follow", is_flag=True, help="Continue with new messages until Ctrl-C.")
@click.option("-n", "--lines", type=click.IntRange(0, 1_000_000), default=50, show_default=True, help="Last messages.")
@click.option("--program", type=click.Choice(PROGRAMS), multiple=True, help="Only this program; may be repeated.")
def logs(follow: bool, lines: int, program: tuple[str, ...]) -> None:
    """Show the messages of machine-agent and machine-server in the journal of this computer."""
    command = ["journalctl", "--no-pager", "--lines", str(lines)]
    command += [word for name in program or PROGRAMS for word in ("--unit", f"{name}.service")]
    try:
        os.execvp(command[0], [*command, *(["--follow"] if follow else [])])
    except OSError as error:
        raise click.ClickException(
            f"journalctl cannot be started: {error.strerror}; without systemd, the messages are on the agent's terminal"
        ) from None


def _device(layout: Layout, config: Path) -> Device:
    from agent.diagnosis.checks import Device

    return Device(layout, config)


def _checked(device: Device) -> list[Any]:
    import trio

    from agent.diagnosis.checks import run_checks

    return trio.run(run_checks, device)


def _last(layout: Layout, name: str, **arguments: Any) -> Any:
    """Return the last value of a command of the running agent; end the program with its error, if it fails."""
    from schema.errors import ErrorKind, MachineError

    try:
        return _run(_ask(layout, name, **arguments))[-1]
    except MachineError as error:
        if error.kind is ErrorKind.UNAVAILABLE:
            raise NoAgent(str(error)) from None
        raise click.ClickException(str(error)) from None


def _ask(layout: Layout, name: str, **arguments: Any) -> Callable[[], AsyncIterator[Any]]:
    from agent.console.client import request

    return lambda: request(layout.console, name, **arguments)


def _run(request: Callable[[], AsyncIterator[T]]) -> list[T]:
    import trio

    async def collect() -> list[T]:
        return [value async for value in request()]

    return trio.run(collect)
