"""The group `machine agent network`, and `machine agent provision`. Imports only click."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from command.agent.ask import last
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from agent import Layout


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  sudo machine agent network status
  sudo machine agent network explain
  sudo machine agent network join home""",
)
def network() -> None:
    """Show and change the networks of this computer.

    Networks of the configuration are changed in the cloud, under additional_networks.
    """


@network.command(epilog="\b\nExample:\n  sudo machine agent network status --json")
@json_option
@click.option("--secrets", is_flag=True, help="Also show the password of the hotspot and the secret of the device.")
@click.pass_obj
def status(layout: Layout, as_json: bool, secrets: bool) -> None:
    """Show the interfaces, what happens next, and the hotspot."""
    value = last(layout, "network-status")
    if not secrets:
        value["hotspot"].pop("password", None)
        value.pop("device_secret", None)
    if as_json:
        print_json(value)
        return
    for line in status_lines(value):
        click.echo(line)


@network.command(epilog="\b\nExample:\n  sudo machine agent network scan")
@json_option
@click.pass_obj
def scan(layout: Layout, as_json: bool) -> None:
    """Listen for wifi networks, and show them, the strongest first."""
    value = last(layout, "network-scan")
    if as_json:
        print_json(value["networks"])
        return
    for entry in value["networks"]:
        joined = "  joined" if entry["joined"] else ""
        click.echo(f"{entry['signal']:3d} %  {entry['security']:<10}  {entry['ssid']}{joined}")
    if not value["networks"]:
        click.echo("No network was heard. The hotspot, or another program that manages the radio, can prevent scans.")


@network.command(epilog="\b\nExample:\n  sudo machine agent network join home")
@click.argument("ssid")
@click.option("--open", "is_open", is_flag=True, help="The network has no password.")
@click.option("--hidden", is_flag=True, help="The network does not announce its name.")
@click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it.",
)  # fmt: skip
@click.pass_obj
def join(layout: Layout, ssid: str, is_open: bool, hidden: bool, password_stdin: bool) -> None:
    """Store a wifi network and join it; it is preferred from now on.

    The password is asked for. It never is an argument, which every user could read.
    """
    password = ""
    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif not is_open:
        password = click.prompt("Password", hide_input=True)
    click.echo(f"Joining {ssid}, for at most 90 seconds", err=True)
    value = last(layout, "network-join", ssid=ssid, password=password, hidden=hidden)
    click.echo(f"{ssid}: {value['text']}")


@network.command(epilog="\b\nExample:\n  sudo machine agent network forget home")
@click.argument("name")
@click.pass_obj
def forget(layout: Layout, name: str) -> None:
    """Forget a network that was entered on the device, by its label or SSID."""
    for label in last(layout, "network-forget", name=name)["forgotten"]:
        click.echo(f"{label}: forgotten")


@network.command(epilog="\b\nExample:\n  sudo machine agent network explain")
@json_option
@click.pass_obj
def explain(layout: Layout, as_json: bool) -> None:
    """Show which network each interface uses, why not the others, and what happens next."""
    value = last(layout, "network-explain")
    if as_json:
        print_json(value)
        return
    for line in explain_lines(value):
        click.echo(line)


@click.command(epilog="\b\nExample:\n  sudo machine agent provision")
@click.option("--new-credentials", is_flag=True, help="Accept credentials of another cloud once, without a proof.")
@click.pass_obj
def provision(layout: Layout, new_credentials: bool) -> None:
    """Start the hotspot for provisioning with a phone, and show its name and password.

    It ends after retry_connection_timeout_minutes, or when a person has finished in the portal.
    """
    value = last(layout, "provision", new_credentials=new_credentials)
    if not value["ssid"]:
        raise click.ClickException("the hotspot is switched off: see disable_wifi_provisioning")
    click.echo(f"Join the wifi network {value['ssid']} with the password {value['password']},")
    click.echo("and open http://machine.setup/ if no page opens by itself.")


def status_lines(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the status for people."""
    yield f"mode: {value['mode'] or 'starting'}"
    if value["next"]:
        yield f"next: {value['next']}"
    for entry in value["interfaces"]:
        by = entry["manager"] or "no program"
        words = [f"{entry['name']}: {entry['kind']}, managed by {by}"]
        words.append("connected" if entry["connected"] else "not connected")
        if entry["ssid"]:
            words.append(f"wifi {entry['ssid']}")
        words += entry["addresses"]
        if entry["cloud"] is not None:
            words.append("the cloud answers" if entry["cloud"] else "the cloud does not answer")
        yield ", ".join(words)
    hotspot = value["hotspot"]
    if hotspot["ssid"]:
        where = f"runs on {hotspot['runs_on']}" if hotspot["runs_on"] else "does not run"
        password = f", password {hotspot['password']}" if hotspot.get("password") else ""
        yield f"hotspot {hotspot['ssid']}: {where}{password}"
    if value.get("device_secret"):
        yield f"secret of the device: {value['device_secret']}"
    for problem in value["problems"]:
        yield f"problem: {problem}"


def explain_lines(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the explanation for people."""
    for entry in value["interfaces"]:
        yield f"{entry['interface']} ({entry['kind']}): {_sentence(entry['state'])}"
        for other in entry.get("not_used", ()):
            yield f"  {other['network']}: {_sentence(other['why'])}"
    for other in value.get("not_used", ()):
        yield f"{other['network']}: {_sentence(other['why'])}"
    if value.get("next_step"):
        yield f"next: {value['next_step']}"


def _sentence(statement: Mapping[str, Any]) -> str:
    remedy = statement.get("remedy", "")
    return f"{statement['text']} -> {remedy}" if remedy else str(statement["text"])
