"""`machine cloud triggers`: lists, explains and tests triggers, and shows their deliveries."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import find, run_with_client, with_client
from command.cloud.times import utc
from command.groups import Commands
from command.output import json_option, print_json
from rpc.api import TRIGGERS
from schema import whole_numbers

if TYPE_CHECKING:
    from rpc.api import ApiClient

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


async def _call(client: ApiClient, machine: str, method: str, **arguments: Any) -> Any:
    return await client.call(TRIGGERS, "", method, part_id=(await find(client, machine)).id, **arguments)


@triggers.command("ls")
@click.argument("machine")
@json_option
@_QUIET
@with_client
async def list_command(client: ApiClient, machine: str, as_json: bool, quiet: bool) -> None:
    """List the active triggers of MACHINE, and the errors of others."""
    from support.text.terminal import table

    reply = await _call(client, machine, "list_triggers")
    listed = [_trigger(trigger) for trigger in reply["triggers"]]
    if as_json:
        print_json({**reply, "triggers": listed})
        return
    if quiet:
        click.echo("".join(f"{trigger['name']}\n" for trigger in listed), nl=False)
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
        for trigger in listed
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
@json_option
def explain(machine: str, name: str, reading: str, as_json: bool) -> None:
    """Show whether a reading would fire the trigger NAME of MACHINE, and why; the default is the latest one captured.

    Nothing is sent. The exit code is 1 if it would not fire.
    """
    sample = _parsed(reading)
    verdict: list[bool] = []

    async def work(client: ApiClient) -> None:
        from support.text.terminal import clean, table

        reply = await _call(client, machine, "explain_trigger", trigger=name, reading=sample)
        explanation = reply["explanation"]
        if as_json:
            targets = [_target(target) for target in reply["targets"]]
            evaluated, explained = whole_numbers(reply.get("reading")), whole_numbers(explanation)
            print_json({"explanation": explained, "targets": targets, "reading": evaluated})
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
@json_option
@_QUIET
@with_client
async def test(
    client: ApiClient, machine: str, name: str, value: str, reading: str, as_json: bool, quiet: bool
) -> None:
    """Send a test message to the targets of the trigger NAME of MACHINE, regardless of its conditions.

    It is sent once, without retries. `machine cloud triggers deliveries` lists it like other deliveries.
    """

    sent = await _call(client, machine, "send_test", trigger=name, value=value, reading=_parsed(reading))
    if as_json:
        print_json({"deliveries": sent})
        return
    for delivery in sent:
        click.echo(delivery if quiet else f"delivery {delivery} was queued")


@triggers.command()
@click.argument("machine")
@click.argument("name")
@with_client
async def start(client: ApiClient, machine: str, name: str) -> None:
    """Resume sending to targets of the trigger NAME of MACHINE that were stopped because they answered 410 (Gone)."""
    await _call(client, machine, "start_trigger", trigger=name)
    click.echo(f"{name} sends to all its targets again")


@triggers.command()
@click.argument("machine")
@click.argument("delivery", required=False)
@click.option("--trigger", default="", help="Only deliveries of this trigger.")
@click.option("--state", type=click.Choice(["waiting", "delivered", "failed"]), help="Only deliveries in this state.")
@click.option("-n", "count", type=click.IntRange(1, 500), default=20, show_default=True, help="Number of deliveries.")
@json_option
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
    from support.text.terminal import table

    if delivery:
        record = _record(await _call(client, machine, "get_delivery", delivery_id=delivery))
        if as_json:
            print_json(record)
        else:
            click.echo("\n".join(_delivery_lines(record)))
        return
    query = {"trigger": trigger, "state": state, "limit": count}
    records = [_delivery(message) for message in await _call(client, machine, "list_deliveries", **query)]
    if as_json:
        print_json(records)
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
    await _call(client, machine, "replay_delivery", delivery_id=delivery)
    click.echo(f"delivery {delivery} was queued")


# ---- parsing and formatting


def _parsed(reading: str) -> dict[str, Any] | None:
    if not reading:
        return None
    text = sys.stdin.read() if reading == "-" else reading
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--reading is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise click.UsageError('--reading is not a JSON object: write for example {"temperature": 31.5}')
    return value


def _trigger(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trigger as --json prints it."""
    return {
        "name": message["name"],
        "event": message["event"],
        "condition": whole_numbers(message["condition"]),
        "notes": message["notes"],
        "targets": [_target(target) for target in message["targets"]],
    }


def _target(message: Mapping[str, Any]) -> dict[str, Any]:
    return {**message, "until": utc(message.get("until"))}


def _delivery(message: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in message.items() if name != "about"}
    times = {name: utc(message.get(name)) for name in ("created", "next")}
    return {**rest, **times, **message["about"]}


def _record(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_delivery(message["delivery"]),
        "headers": message["headers"],
        "body": message["body"].decode(errors="replace"),
        "tried": [
            {
                "attempt": attempt["number"],
                "started": utc(attempt["started"]),
                "seconds": attempt["duration"].total_seconds(),
                "status": attempt["status"],
                "error": attempt["error"],
            }
            for attempt in message["attempts"]
        ],
    }


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
    return f"muted until {_clock(target['until'])}" if target["until"] else "ready"


def _clock(text: str) -> str:
    """Return a time without fractions of seconds, such as `2026-01-02T03:04:05Z`."""
    return text.partition(".")[0].removesuffix("Z").removesuffix("+00:00") + "Z"


def _delivery_lines(delivery: Mapping[str, Any]) -> Sequence[str]:
    from support.text.terminal import clean, table

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
