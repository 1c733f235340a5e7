"""The commands of `machine hal`. Imports only click."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from command.groups import Commands
from command.output import json_option

Function = TypeVar("Function", bound=Callable[..., Any])
_AT: Final = click.option("--root", type=click.Path(path_type=Path), default=Path("/"), hidden=True)
"""The folder with /sys, /dev, /proc and /etc; another one in tests, and for inspecting an image."""


def listing_options(function: Function) -> Function:
    """Add the options of commands that list hardware."""
    options = (
        json_option,
        click.option("--config", "as_config", is_flag=True, help="Print entries for the machine's configuration."),
        click.option("--lines", is_flag=True, help="Show every GPIO line, too."),
        click.option("--no-scan", is_flag=True, help="Do not probe the addresses of I2C buses."),
        _AT,
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog="""\b
Examples:
  machine hal                              what is connected
  machine hal --config > machine.json      entries ready to paste
  machine hal check                        problems and remedies
  sudo machine hal install-rules --user pi
  machine hal boards raspberry-pi-4        the pin-out""",
)
@listing_options
@click.pass_context
def hal(context: click.Context, as_json: bool, as_config: bool, lines: bool, no_scan: bool, root: Path) -> None:
    """Show and check the hardware of this computer; no machine-server is needed.

    Without a command, this is the same as `machine hal list`.
    """
    if context.invoked_subcommand is None:
        _show(as_json, as_config, lines, no_scan, root)


@hal.command(name="list", epilog="\b\nExample:\n  machine hal list --json --no-scan")
@listing_options
def list_(as_json: bool, as_config: bool, lines: bool, no_scan: bool, root: Path) -> None:
    """List chips, buses with the addresses that answer, ports and devices.

    Addresses are probed like i2cdetect does, except those used by kernel drivers and the buses of displays. If several
    models fit a device, --config prints an entry for the most likely one, and names the others on standard error.
    """
    _show(as_json, as_config, lines, no_scan, root)


def _show(as_json: bool, as_config: bool, lines: bool, no_scan: bool, root: Path) -> None:
    if as_json and as_config:
        raise click.UsageError("--config prints JSON already: leave out --json")
    from command.hal.show import show

    show(root, as_json=as_json, as_config=as_config, lines=lines, scan=not no_scan)


@hal.command(epilog="\b\nExample:\n  machine hal check")
@json_option
@click.option("--no-scan", is_flag=True, help="Do not probe the addresses of I2C buses.")
@_AT
def check(as_json: bool, no_scan: bool, root: Path) -> None:
    """Explain problems that prevent the use of hardware, with remedies.

    The check applies to the user who runs it. The exit code is 1 if there is a problem; hints do not count.
    """
    from command.hal.show import check as do

    raise click.exceptions.Exit(do(root, as_json=as_json, scan=not no_scan))


@hal.command(epilog="\b\nExamples:\n  machine hal boards\n  machine hal boards raspberry-pi-4")
@click.argument("name", required=False, default="")
@json_option
def boards(name: str, as_json: bool) -> None:
    """List supported boards, or print the pin-out of NAME."""
    from command.hal.boards import show

    show(name, as_json=as_json)


@hal.command(
    epilog="\b\nExamples:\n  machine hal install-rules --dry-run\n  sudo machine hal install-rules --user pi",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.option("--uninstall", is_flag=True, help="Remove the rules; groups and their members stay.")
@click.option("--user", default="", metavar="NAME", help="Make this user a member of the groups.")
@_AT
def install_rules(dry_run: bool, uninstall: bool, user: str, root: Path) -> None:
    """Install the udev rules: groups that may use devices, and stable names under /dev/machine.

    Needs root. Creates missing groups, copies the rules to /etc/udev/rules.d, and lets udev apply them to present
    devices. Skips steps that are already done.
    """
    from command.hal.rules import install, remove

    if uninstall and user:
        raise click.UsageError("--user cannot be combined with --uninstall, which does not change members of groups")
    if uninstall:
        remove(dry_run=dry_run, root=root)
    else:
        install(dry_run=dry_run, user=user, root=root)
