"""The commands of `machine agent`. Imports only click."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from command.agent.ask import ask, duration, last, run
from command.agent.lease import lease
from command.agent.network import network, provision
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from datetime import datetime

    from agent import Layout
    from agent.diagnosis import CheckedDevice

PROGRAMS: Final = ("machine-agent", "machine-server")
_PATH: Final = click.Path(path_type=Path)
_CONFIG: Final = click.option(
    "--config", type=_PATH, default=Path("/etc/machine.json"), show_default=True, metavar="FILE",
    help="Credentials file.",
)  # fmt: skip
_DEFAULTS: Final = click.option(
    "--defaults", type=_PATH, default=Path("/etc/machine-defaults.json"), show_default=True, metavar="FILE",
    help="Settings of the manufacturer, as for the agent.",
)  # fmt: skip


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
    from agent import Layout

    usual = Layout()
    context.obj = Layout(root, run_folder or (usual.run if root == usual.root else root / "run"))


@agent.command(epilog="\b\nExample:\n  sudo machine agent status --json")
@json_option
@click.pass_obj
def status(layout: Layout, as_json: bool) -> None:
    """Show the versions, the updates in progress and what they wait for, and problems.

    Exit code 3: machine-agent is not running; `machine agent check` says why.
    """
    report = last(layout, "status")
    if as_json:
        print_json(report)
        return
    from command.agent.show import status_lines

    for line in status_lines(report):
        click.echo(line)


@agent.command(epilog="\b\nExample:\n  sudo machine agent check")
@_CONFIG
@_DEFAULTS
@json_option
@click.pass_obj
def check(layout: Layout, config: Path, defaults: Path, as_json: bool) -> None:
    """Check clock, DNS, cloud, disk, units, control groups, credentials, Wi-Fi and ports, and suggest remedies.

    Changes nothing, and needs no running agent. Exit code 1: at least one check has failed.
    """
    from agent.diagnosis import Level, findings_table

    findings = _checked(_device(layout, config, defaults))
    if as_json:
        print_json([{**finding._asdict(), "level": finding.level.value} for finding in findings])
    else:
        click.echo(findings_table(findings), nl=False)
    if any(finding.level is Level.FAIL for finding in findings):
        sys.exit(1)


@agent.command(epilog="\b\nExample:\n  sudo machine agent bundle rover.tar.gz")
@click.argument("file", type=_PATH, required=False)
@_CONFIG
@_DEFAULTS
@click.pass_obj
def bundle(layout: Layout, file: Path | None, config: Path, defaults: Path) -> None:
    """Write an archive for support: checks, state, logs and system facts, without secrets.

    The default for FILE is machine-bundle-TIME.tar.gz in the current folder. An existing file is never replaced.
    """
    import time

    from agent.diagnosis import bundle_contents, findings_table, write_bundle
    from schema import MachineError

    path = file or Path(time.strftime("machine-bundle-%Y%m%d-%H%M%S.tar.gz"))
    device = _device(layout, config, defaults)
    click.echo("Running the checks", err=True)
    findings = findings_table(_checked(device))
    try:
        report = json.dumps(run(ask(layout, "status"))[-1]).encode()
    except MachineError:
        report = None
    click.echo("Collecting logs and facts", err=True)
    try:
        count = write_bundle(path, bundle_contents(device, findings, report))
    except FileExistsError:
        raise click.ClickException(f"{path} exists: choose another name") from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None
    click.echo(f"{path}: {count} entries. Secrets are masked; look at it before you send it.")


_OWN = click.option("--agent", "own", is_flag=True, help="Update machine-agent itself instead of machine-server.")


@agent.command(
    epilog="""\b
Examples:
  sudo machine agent update                          ask the cloud now
  sudo machine agent update --now                    do not wait for maintenance
  sudo machine agent update 1.4.2                    install a version and keep it
  sudo machine agent update file:///root/machine-server-v1.4.2-aarch64
  sudo machine agent update --follow-cloud           follow the cloud again"""
)
@click.argument("choice", metavar="[VERSION|URL]", required=False)
@click.option(
    "--now",
    "at_once",
    is_flag=True,
    help="Do not wait for windows, leases and the maintenance sensor. Hooks still can defer it.",
)
@click.option("--follow-cloud", is_flag=True, help="Follow the cloud again after a version or URL was chosen here.")
@_OWN
@click.pass_obj
def update(layout: Layout, choice: str | None, at_once: bool, follow_cloud: bool, own: bool) -> None:
    """Fetch settings and versions from the cloud now, or install the given version or URL.

    A version must be among the signed releases of the organization. The version stays installed until --follow-cloud.
    """
    if choice and follow_cloud:
        raise click.UsageError("a version or URL and --follow-cloud exclude each other")
    arguments: dict[str, Any] = {"program": PROGRAMS[0 if own else 1], "now": at_once}
    if choice or follow_cloud:
        arguments["choice"] = choice or ""
    last(layout, "update", **arguments)
    if choice:
        click.echo(f"{arguments['program']}: this release is looked up and installed: `machine agent status` shows it")
    elif follow_cloud:
        click.echo(f"{arguments['program']}: the cloud decides again which release is installed")
    else:
        click.echo("machine-agent asks the cloud now: `machine agent status` shows the result")


@agent.command(epilog="\b\nExample:\n  sudo machine agent rollback")
@_OWN
@click.pass_obj
def rollback(layout: Layout, own: bool) -> None:
    """Switch back to the previous release, at once and without the network.

    The current release is quarantined: it is installed again only if a person chooses it.
    """
    done = last(layout, "rollback", program=PROGRAMS[0 if own else 1])
    click.echo(f"{done['program']} goes back to version {done['version']}: `machine agent status` shows the result")


@agent.command(
    epilog="""\b
Examples:
  sudo machine agent hold --for 2d
  sudo machine agent hold --until "2026-06-30 18:00"
  sudo machine agent hold --release"""
)
@click.option("--for", "period", metavar="TIME", help="How long, such as 90m, 12h or 2d; at most 30d.")
@click.option(
    "--until", "end", type=click.DateTime(("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d")), metavar="DATE",
    help="Until when, such as 2026-06-30 or '2026-06-30 18:00', in the time zone of this device; at most 30 days.",
)  # fmt: skip
@click.option("--release", is_flag=True, help="End the hold.")
@_OWN
@click.pass_obj
def hold(layout: Layout, period: str | None, end: datetime | None, release: bool, own: bool) -> None:
    """Keep the current release for some time, unless another is chosen on this device. Downloads continue."""
    import time

    if (period is not None) + (end is not None) + release != 1:
        raise click.UsageError("give one of --for, --until and --release")
    until = 0.0
    if period is not None:
        until = time.time() + duration(period)
    elif end is not None and (until := end.timestamp()) <= time.time():
        raise click.BadParameter(f"{end:%Y-%m-%d %H:%M} is in the past", param_hint="--until")
    done = last(layout, "hold", program=PROGRAMS[0 if own else 1], until=until)
    if release:
        click.echo(f"{done['program']}: updates are no longer held")
    else:
        moment = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(until))
        click.echo(f"{done['program']}: updates are held until {moment}")


@agent.command(epilog="\b\nExample:\n  sudo machine agent restart")
@click.pass_obj
def restart(layout: Layout) -> None:
    """Restart machine-server now, without waiting for maintenance."""
    last(layout, "restart")
    click.echo("machine-server was stopped and is started again: `machine agent status` shows the result")


@agent.command(
    epilog="\b\nExamples:\n  sudo machine agent logs -n 200\n  sudo machine agent logs -f --program machine-server"
)
@click.option("-f", "--follow", is_flag=True, help="Continue with new messages until Ctrl-C.")
@click.option("-n", "--lines", type=click.IntRange(0, 1_000_000), default=50, show_default=True, help="Message count.")
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


def _device(layout: Layout, config: Path, defaults: Path) -> CheckedDevice:
    from agent.diagnosis import CheckedDevice

    return CheckedDevice(layout, config, defaults=defaults)


def _checked(device: CheckedDevice) -> list[Any]:
    from agent.diagnosis import run_checks
    from command.interrupts import run_until_interrupted

    return run_until_interrupted(partial(run_checks, device))


agent.add_command(lease)
agent.add_command(network)
agent.add_command(provision)
