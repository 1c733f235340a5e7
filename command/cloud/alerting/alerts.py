"""`machine cloud alerts`: alerts, their history, and their rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from command.cloud.group import APP, find, with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.times import local, with_texts
from command.groups import Commands
from command.output import json_option, print_json
from rpc.api import ALERTS
from schema import whole_numbers

if TYPE_CHECKING:
    from rpc.api import ApiClient

_WHOLE_ID: Final = 36  # characters
_RULE: Final = click.argument("rule")


@click.group(cls=Commands)
def alerts() -> None:
    """Show alerts, acknowledge and silence them, and change their rules.

    An alert is one rule at one machine. Its id is in `alerts list`; the first letters are enough.
    """


@alerts.command("list")
@json_option
@with_client
async def list_command(client: ApiClient, as_json: bool) -> None:
    """List the alerts that fire or were acknowledged."""
    from support.text.terminal import table

    listed = await client.call(ALERTS, "", "list_alerts")
    if as_json:
        print_json(whole_numbers(with_texts(listed)))
        return
    rows = [
        [
            alert["id"][:8],
            _state(alert),
            alert["rule"],
            alert["machine"],
            alert["source"],
            _value(alert.get("value")),
            local(alert["since"], seconds=False) if alert.get("since") else "",
        ]
        for alert in listed
    ]
    headings = ["ID", "STATE", "RULE", "MACHINE", "WHERE", "VALUE", "SINCE"]
    click.echo("\n".join(table(headings, rows)) if rows else "no alerts")


@alerts.command("show")
@click.argument("alert")
@with_client
async def show_alert(client: ApiClient, alert: str) -> None:
    """Print ALERT as JSON; by its whole id also one that was resolved."""
    subject = alert if len(alert) == _WHOLE_ID else await _alert(client, alert)
    reply = await client.call(ALERTS, "", "get_alert", alert_id=subject)
    click.echo(json.dumps(whole_numbers(with_texts(reply)), indent=2))


@alerts.command()
@click.argument("alert")
@with_client
async def ack(client: ApiClient, alert: str) -> None:
    """Acknowledge ALERT: you take care of it, and there are no more reminders."""
    await client.call(ALERTS, "", "acknowledge_alert", alert_id=await _alert(client, alert))


@alerts.command()
@click.argument("alert", default="")
@click.option("--rule", default="", help="Silence all alerts of this rule, an id or a name.")
@click.option("--machine", default="", help="Silence all alerts of this machine, a name or the id of a part.")
@click.option("--for", "hours", type=click.FloatRange(min=0, min_open=True, max=720), help="Hours; 1 by default.")
@click.option("--until", type=click.DateTime(["%Y-%m-%dT%H:%M"]), help="Time of this computer.")
@click.option("--off", is_flag=True, help="End the silence.")
@ORGANIZATION
@with_client
async def silence(
    client: ApiClient,
    alert: str,
    rule: str,
    machine: str,
    hours: float | None,
    until: datetime | None,
    off: bool,
    organization: str,
) -> None:
    """Send nothing for some hours about ALERT, or about all alerts of a rule or a machine, later ones included."""
    if bool(alert) + bool(rule) + bool(machine) != 1:
        raise click.UsageError("give either ALERT, --rule or --machine")
    if (hours is not None) + (until is not None) + off > 1:
        raise click.UsageError("give only one of --for, --until and --off")
    end = until.astimezone(UTC) if until is not None else datetime.now(UTC) + timedelta(hours=hours or 1)
    fields = {} if off else {"until": end}
    if alert:
        await client.call(ALERTS, "", "silence_alert", alert_id=await _alert(client, alert), **fields)
        return
    owner = (await organization_of(client, organization))["id"]
    what = {"rule_id": (await _rule(client, owner, rule))["id"]} if rule else {}
    if machine:
        part = await find(client, machine)
        what["machine_id"] = (await client.call(APP, "", "get_robot_part", id=part.id))["part"]["robot"]
    await client.call(ALERTS, "", "silence_alerts", organization_id=owner, **what, **fields)


@alerts.command()
@ORGANIZATION
@json_option
@with_client
async def silences(client: ApiClient, organization: str, as_json: bool) -> None:
    """List the silences of rules and machines, the next to end first."""
    from support.text.terminal import table

    owner = (await organization_of(client, organization))["id"]
    listed = await client.call(ALERTS, "", "list_alert_silences", organization_id=owner)
    if as_json:
        print_json(with_texts(listed))
        return
    rows = [
        ["rule" if each["rule_id"] else "machine", each["name"], local(each["until"]), each["silenced_by"]]
        for each in listed
    ]
    click.echo("\n".join(table(["SILENCED", "NAME", "UNTIL", "BY"], rows)) if rows else "nothing is silenced")


@alerts.command()
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="Most events.")
@json_option
@with_client
async def history(client: ApiClient, limit: int, as_json: bool) -> None:
    """List what has happened to alerts, newest first."""
    from support.text.terminal import table

    reply = await client.call(ALERTS, "", "list_alert_events", limit=limit)
    if as_json:
        print_json(whole_numbers(with_texts(reply["events"])))
        return
    rows = [
        [
            local(event["happened"]),
            event["kind"],
            event["rule"],
            event["machine"],
            event["source"],
            _value(event.get("value")),
            event["detail"],
        ]
        for event in reply["events"]
    ]
    click.echo("\n".join(table(["TIME", "EVENT", "RULE", "MACHINE", "WHERE", "VALUE", "BY"], rows)))


@alerts.group(cls=Commands)
def rules() -> None:
    """Show, change and test the rules of an organization. Rules are JSON in files."""


@rules.command("ls")
@ORGANIZATION
@json_option
@with_client
async def list_rules(client: ApiClient, organization: str, as_json: bool) -> None:
    """List the rules. With --json, `rule` of each is what `rules set` reads."""
    from support.text.terminal import table

    listed = await _rules(client, organization)
    if as_json:
        print_json(whole_numbers(listed))
        return
    rows = [
        [
            rule["id"],
            rule["name"],
            rule["rule"]["kind"],
            "off" if rule["rule"].get("enabled") is False else "on",
            "built in" if rule["builtin"] else "",
            "" if rule["reaches"] else "no targets",
        ]
        for rule in listed
    ]
    click.echo("\n".join(table(["ID", "NAME", "KIND", "STATE", "", "TARGETS"], rows)))


@rules.command()
@_RULE
@ORGANIZATION
@with_client
async def show(client: ApiClient, rule: str, organization: str) -> None:
    """Print RULE, an id or a name, as JSON."""
    click.echo(json.dumps(whole_numbers((await _rule(client, organization, rule))["rule"]), indent=2))


@rules.command("set")
@click.argument("file", type=click.File())
@click.option("--rule", default="", help="Change this rule, an id or a name, instead of creating one.")
@ORGANIZATION
@with_client
async def set_rule(client: ApiClient, file: TextIO, rule: str, organization: str) -> None:
    """Create a rule from the JSON in FILE (- is standard input), or change one; print its id."""
    owner = (await organization_of(client, organization))["id"]
    subject = (await _rule(client, owner, rule))["id"] if rule else ""
    fields = {"organization_id": owner, "rule_id": subject, "rule": _read(file)}
    click.echo(await client.call(ALERTS, "", "set_alert_rule", **fields))


@rules.command()
@_RULE
@ORGANIZATION
@with_client
async def delete(client: ApiClient, rule: str, organization: str) -> None:
    """Delete RULE, an id or a name. A built-in rule becomes what it was at first."""
    owner = (await organization_of(client, organization))["id"]
    subject = (await _rule(client, owner, rule))["id"]
    await client.call(ALERTS, "", "delete_alert_rule", organization_id=owner, rule_id=subject)


@rules.command()
@_RULE
@ORGANIZATION
@json_option
@with_client
async def test(client: ApiClient, rule: str, organization: str, as_json: bool) -> None:
    """Send a test message of RULE, an id or a name, and show what the receivers answer within 20 seconds."""
    from support.text.terminal import table

    owner = (await organization_of(client, organization))["id"]
    subject = (await _rule(client, owner, rule))["id"]
    sent = await client.call(ALERTS, "", "send_alert_test", organization_id=owner, rule_id=subject)
    answers = await client.call(ALERTS, "", "wait_for_alert_test", organization_id=owner, delivery_ids=sent)
    if as_json:
        print_json(answers)
    else:
        rows = [[each["type"], each["value"], each["state"], each["error"]] for each in answers]
        click.echo("\n".join(table(["TYPE", "TARGET", "STATE", "ERROR"], rows)))
    if any(answer["state"] != "answered" for answer in answers):
        raise click.exceptions.Exit(1)


@rules.command()
@click.argument("file", type=click.File())
@ORGANIZATION
@json_option
@with_client
async def preview(client: ApiClient, file: TextIO, organization: str, as_json: bool) -> None:
    """Show what the rule in FILE (- is standard input) would have caused in the last week. It is not stored."""
    owner = (await organization_of(client, organization))["id"]
    reply = await client.call(ALERTS, "", "explain_alert_rule", organization_id=owner, rule=_read(file))
    if as_json:
        print_json(whole_numbers(with_texts(reply)))
        return
    click.echo(f"{reply['count']} alerts since {local(reply['start'], seconds=False)}")
    for source in reply["sources"]:
        state = ", would fire now" if source["open"] else ""
        span = f"{source['least']:g} to {source['greatest']:g}"
        click.echo(f"{source['machine']}, {source['source']}: {source['count']}, values {span}{state}")
    for note in reply["notes"]:
        click.echo(note, err=True)


@alerts.command()
@click.option("--webhook", metavar="URL", help="Send a POST request with the alerts as JSON.")
@click.option("--email", metavar="ADDRESS", help="Send an email.")
@click.option("--secret-file", type=click.File(), help="File with the secret that signs webhooks.")
@click.option("--remove", metavar="TARGET", help="Notify this URL or address no more.")
@ORGANIZATION
@json_option
@with_client
async def notify(
    client: ApiClient, webhook: str | None, email: str | None, secret_file: TextIO | None, remove: str | None,
    organization: str, as_json: bool,
) -> None:  # fmt: skip
    """Choose who is notified by all rules without targets of their own, and list them."""
    from support.text.terminal import table

    owner = (await organization_of(client, organization))["id"]
    secret = secret_file.read().strip() if secret_file is not None else ""
    for kind, value in (("webhook", webhook), ("email", email)):
        if value is not None:
            fields = {"type": kind, "value": value, "secret": secret if kind == "webhook" else ""}
            await client.call(ALERTS, "", "add_alert_target", organization_id=owner, **fields)
    for target in await client.call(ALERTS, "", "list_alert_targets", organization_id=owner):
        if target["value"] == remove:
            fields = {"type": target["type"], "value": target["value"]}
            await client.call(ALERTS, "", "remove_alert_target", organization_id=owner, **fields)
    listed = await client.call(ALERTS, "", "list_alert_targets", organization_id=owner)
    if as_json:
        print_json(with_texts(listed))
        return
    rows = [[each["type"], each["value"], each["state"], each["error"]] for each in listed]
    click.echo("\n".join(table(["TYPE", "TARGET", "LAST MESSAGE", "ERROR"], rows)) if rows else "no targets")


async def _alert(client: ApiClient, beginning: str) -> str:
    """Return the id of the open alert that begins so."""
    listed = await client.call(ALERTS, "", "list_alerts")
    matches: list[str] = [alert["id"] for alert in listed if alert["id"].startswith(beginning)]
    if len(matches) != 1:
        problem = "there is no alert" if not matches else "there are several alerts"
        raise click.ClickException(f"{problem} {beginning!r}: `machine cloud alerts list` shows the ids")
    return matches[0]


async def _rules(client: ApiClient, organization: str) -> list[dict[str, Any]]:
    owner = (await organization_of(client, organization))["id"]
    listed: list[dict[str, Any]] = await client.call(ALERTS, "", "list_alert_rules", organization_id=owner)
    return listed


async def _rule(client: ApiClient, organization: str, name: str) -> Mapping[str, Any]:
    for rule in await _rules(client, organization):
        if name in (rule["id"], rule["name"]):
            return rule
    raise click.ClickException(f"there is no rule {name!r}: `machine cloud alerts rules ls` lists them")


def _read(file: TextIO) -> Mapping[str, Any]:
    try:
        value = json.load(file)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{file.name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"{file.name} is not a JSON object")
    return value


def _state(alert: Mapping[str, Any]) -> str:
    return f"{alert['state']}, silenced" if alert.get("silenced_until") else str(alert["state"])


def _value(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
