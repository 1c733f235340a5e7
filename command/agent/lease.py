"""The group `machine agent lease`: programs hold off updates and restarts for some time. Imports only click."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from command.agent.ask import duration, last
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from agent import Layout


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  sudo machine agent lease take flash --for 10m
  sudo machine agent lease list
  sudo machine agent lease release flash""",
)
def lease() -> None:
    """Hold off updates and restarts while a program must not be interrupted.

    A lease ends by itself. It does not stop `machine agent update --now` or `machine agent restart`.
    """


@lease.command(epilog="\b\nExample:\n  sudo machine agent lease take flash --for 10m --note 'writes the firmware'")
@click.argument("name")
@click.option("--for", "period", metavar="TIME", required=True, help="How long, such as 90s, 10m or 2h; at most 24h.")
@click.option("--note", default="", help="Reason, for people.")
@click.pass_obj
def take(layout: Layout, name: str, period: str, note: str) -> None:
    """Take a lease, or renew the one with this name."""
    done = last(layout, "lease-take", name=name, seconds=duration(period), note=note)
    for program in done["late"]:
        click.echo(f"warning: {program} is being switched already, and may still be restarted", err=True)
    click.echo(f"{name}: updates and restarts are held off until {_local(done['until'])}")


@lease.command(epilog="\b\nExample:\n  sudo machine agent lease release flash")
@click.argument("name")
@click.pass_obj
def release(layout: Layout, name: str) -> None:
    """End a lease. What waits only for it begins at once."""
    last(layout, "lease-release", name=name)
    click.echo(f"{name}: released")


@lease.command("list", epilog="\b\nExample:\n  sudo machine agent lease list --json")
@json_option
@click.pass_obj
def list_(layout: Layout, as_json: bool) -> None:
    """Show the leases that hold off updates and restarts now."""
    answer = last(layout, "lease-list")
    if as_json:
        print_json(answer["leases"])
        return
    if not answer["leases"]:
        click.echo("no leases: nothing is held off")
    for item in answer["leases"]:
        note = f": {item['note']}" if item["note"] else ""
        click.echo(f"{item['name']} until {_local(item['until'])}{note}")


def _local(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(moment))
