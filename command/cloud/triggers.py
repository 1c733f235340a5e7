"""`machine cloud triggers`: lists, explains and tests triggers, and shows their deliveries."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import click

from command.cloud.group import find, run_with_client, with_client
from command.groups import Commands

if TYPE_CHECKING:
    from rpc.api.client import ApiClient

_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print a line of JSON, for programs.")
_QUIET: Final = click.option("-q", "--quiet", is_flag=True, help="Print only names or ids, one per line.")
_READING: Final = click.option(
    "--reading",
    metavar="JSON|-",
    default="",
    help='Reading, such as {"temperature": 31.5}; - reads it from standard input.',
)


@click.group(cls=Commands)
def triggers() -> None:
    """Show, explain and test a machine's triggers, and show their deliveries.

    Triggers are configured in `triggers` of the machine's configuration: `machine cloud config edit MACHINE`.
    """


async def _request(client: ApiClient, machine: str, method: str, *names: str, body: Any = None, **query: Any) -> Any:
    from command.cloud.http import request_json

    part = await find(client, machine)
    path = "/".join(("/api/v1/parts", *(quote(segment, safe="") for segment in (part.id, *names))))
    parameters = urlencode({name: value for name, value in query.items() if value not in ("", None)})
    return await request_json(method, f"{path}?{parameters}" if parameters else path, body)


@triggers.command("ls")
@click.argument("machine")
@_JSON
@_QUIET
@with_client
async def list_command(client: ApiClient, machine: str, as_json: bool, quiet: bool) -> None:
    """List the active triggers of MACHINE, and the errors of others."""
    from runtime.engine.views.tables import one_line, table

    reply = await _request(client, machine, "GET", "triggers")
    if as_json:
        click.echo(one_line(reply))
        return
    if quiet:
        click.echo("".join(f"{trigger['name']}\n" for trigger in reply["triggers"]), nl=False)
        return
    rows = [
        [
            trigger["name"],
            trigger["event"],
            _condition(trigger["condition"]),
            target["type"],
            target["value"],
            _state(target),
        ]
        for trigger in reply["triggers"]
        for target in trigger["targets"]
    ]
    click.echo("\n".join(table(["NAME", "EVENT", "CONDITION", "TYPE", "TARGET", "STATE"], rows)))
    for kind in ("problems", "warnings"):
        for line in reply[kind]:
            click.echo(f"{kind[:-1]}: {line}", err=True)


@triggers.command()
@click.argument("machine")
@click.argument("name")
@_READING
@_JSON
def explain(machine: str, name: str, reading: str, as_json: bool) -> None:
    """Show whether a reading would fire the trigger NAME of MACHINE, and why; the default is the latest one captured.

    Nothing is sent. The exit code is 1 if it would not fire.
    """
    body = _reading_body(reading)
    verdict: list[bool] = []

    async def work(client: ApiClient) -> None:
        from runtime.engine.views.tables import clean, one_line, table

        reply = await _request(client, machine, "POST", "triggers", name, "explain", body=body)
        explanation = reply["explanation"]
        if as_json:
            click.echo(one_line(reply))
        else:
            outcome = "it would fire" if explanation["fires"] else "it would not fire"
            click.echo(clean(f"{outcome}: {explanation['reason']}"))
            rows = [
                ["holds" if finding["holds"] else "does not hold", finding["path"] or "reading", finding["reason"]]
                for finding in explanation["findings"]
            ]
            if rows:
                click.echo("\n".join(table(["", "FIELD", "WHY"], rows)))
        verdict.append(explanation["fires"])

    run_with_client(work, as_json=as_json)
    sys.exit(0 if all(verdict) else 1)


@triggers.command()
@click.argument("machine")
@click.argument("name")
@click.option("--to", "value", default="", help="Only to the target with this URL or address.")
@_READING
@_JSON
@_QUIET
@with_client
async def test(
    client: ApiClient, machine: str, name: str, value: str, reading: str, as_json: bool, quiet: bool
) -> None:
    """Send a test message to the targets of the trigger NAME of MACHINE, regardless of its conditions.

    It is sent once, without retries. `machine cloud triggers deliveries` lists it like other deliveries.
    """
    from runtime.engine.views.tables import one_line

    body = {**_reading_body(reading), "value": value}
    reply = await _request(client, machine, "POST", "triggers", name, "test", body=body)
    if as_json:
        click.echo(one_line(reply))
        return
    for delivery in reply["deliveries"]:
        click.echo(delivery if quiet else f"delivery {delivery} was queued")


@triggers.command()
@click.argument("machine")
@click.argument("name")
@with_client
async def start(client: ApiClient, machine: str, name: str) -> None:
    """Resume sending to targets of the trigger NAME of MACHINE that were stopped because they answered 410 (Gone)."""
    await _request(client, machine, "POST", "triggers", name, "start", body={})
    click.echo(f"{name} sends to all its targets again")


@triggers.command()
@click.argument("machine")
@click.argument("delivery", required=False)
@click.option("--trigger", default="", help="Only deliveries of this trigger.")
@click.option("--state", type=click.Choice(["waiting", "delivered", "failed"]), help="Only deliveries in this state.")
@click.option("-n", "count", type=click.IntRange(1, 500), default=20, show_default=True, help="Number of deliveries.")
@_JSON
@_QUIET
@with_client
async def deliveries(
    client: ApiClient,
    machine: str,
    delivery: str | None,
    trigger: str,
    state: str | None,
    count: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """List the deliveries for MACHINE in the last 30 days, or all attempts of the one with the id DELIVERY."""
    from runtime.engine.views.tables import one_line, table

    if delivery:
        record = await _request(client, machine, "GET", "deliveries", delivery)
        click.echo(one_line(record) if as_json else "\n".join(_delivery(record)))
        return
    query = {"trigger": trigger, "state": state, "limit": count}
    records = (await _request(client, machine, "GET", "deliveries", **query))["deliveries"]
    if as_json:
        click.echo(one_line(records))
        return
    if quiet:
        click.echo("".join(f"{record['id']}\n" for record in records), nl=False)
        return
    rows = [
        [
            _clock(record["created"]),
            record["trigger"] + (" (test)" if record["test"] else ""),
            record["state"],
            str(record["attempts"]),
            record["target"],
            record["id"],
        ]
        for record in records
    ]
    click.echo("\n".join(table(["CREATED", "TRIGGER", "STATE", "ATTEMPTS", "TARGET", "ID"], rows)))


@triggers.command()
@click.argument("machine")
@click.argument("delivery")
@with_client
async def replay(client: ApiClient, machine: str, delivery: str) -> None:
    """Send DELIVERY of MACHINE again, with the same body and id."""
    await _request(client, machine, "POST", "deliveries", delivery, "replay", body={})
    click.echo(f"delivery {delivery} was queued")


# ---- parsing and formatting


def _reading_body(reading: str) -> dict[str, Any]:
    if not reading:
        return {}
    text = sys.stdin.read() if reading == "-" else reading
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--reading is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise click.UsageError('--reading is not a JSON object: write for example {"temperature": 31.5}')
    return {"reading": value}


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _condition(condition: Mapping[str, Any]) -> str:
    if "evals" in condition:
        parts = [f"{comparison['operator']} {_json_text(comparison['value'])}" for comparison in condition["evals"]]
        return " ".join([condition["data_capture_method"], " and ".join(parts)]).rstrip()
    return ", ".join(condition.get("data_types", condition.get("log_levels", ())))


def _state(target: Mapping[str, Any]) -> str:
    if target["stopped"]:
        return f"stopped: {target['stopped']}"
    return f"pausing until {_clock(target['until'])}" if target["until"] else "ready"


def _clock(text: str) -> str:
    """Return a time without fractions of seconds, such as `2026-01-02T03:04:05Z`."""
    return text.partition(".")[0].removesuffix("Z").removesuffix("+00:00") + "Z"


def _delivery(delivery: Mapping[str, Any]) -> Sequence[str]:
    from runtime.engine.views.tables import clean, table

    names = ("id", "trigger", "event", "type", "target", "state", "created", "next", "component", "method")
    facts = [[name, clean(str(delivery[name]))] for name in names if delivery.get(name)]
    attempts = [
        [
            str(attempt["attempt"]),
            _clock(attempt["started"]),
            f"{attempt['seconds']:.2f} s",
            str(attempt["status"] or ""),
            attempt["error"],
        ]
        for attempt in delivery["tried"]
    ]
    lines = [f"{name:<10} {value}" for name, value in facts]
    if attempts:
        lines += ["", *table(["NO", "STARTED", "DURATION", "STATUS", "ERROR"], attempts)]
    if delivery["body"]:
        lines += ["", *(clean(line) for line in delivery["body"].splitlines())]
    return lines
