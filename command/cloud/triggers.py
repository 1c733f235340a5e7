"""`machine cloud triggers`: lists, explains and tests triggers, and shows their deliveries."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import click

from command.cloud.group import ask, find
from command.groups import Commands

if TYPE_CHECKING:
    from rpc.api.client import ApiClient

_JSON: Final = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for programs.")
_QUIET: Final = click.option("-q", "--quiet", is_flag=True, help="Names or ids only, one a line.")
_READING: Final = click.option(
    "--reading", metavar="JSON|-", default="", help='Such as {"temperature": 31.5}; - reads it from standard input.'
)


@click.group(cls=Commands)
def triggers() -> None:
    """Show, explain and test a machine's triggers, and show their deliveries.

    Triggers are configured in `triggers` of the machine's configuration: `machine cloud config edit MACHINE`.
    """


async def _ask(client: ApiClient, machine: str, method: str, *names: str, body: Any = None, **query: Any) -> Any:
    from command.cloud.http import asked

    part = await find(client, machine)
    path = "/".join(("/api/v1/parts", *(quote(one, safe="") for one in (part.id, *names))))
    wanted = urlencode({name: value for name, value in query.items() if value not in ("", None)})
    return await asked(method, f"{path}?{wanted}" if wanted else path, body)


@triggers.command("ls")
@click.argument("machine")
@_JSON
@_QUIET
def list_command(machine: str, as_json: bool, quiet: bool) -> None:
    """List the active triggers of MACHINE, and the errors of others."""

    async def work(client: ApiClient) -> None:
        from runtime.engine.views.tables import one_line, table

        found = await _ask(client, machine, "GET", "triggers")
        if as_json:
            click.echo(one_line(found))
            return
        if quiet:
            click.echo("".join(f"{one['name']}\n" for one in found["triggers"]), nl=False)
            return
        rows = [
            [one["name"], one["event"], _condition(one["condition"]), target["type"], target["value"], _state(target)]
            for one in found["triggers"]
            for target in one["targets"]
        ]
        click.echo("\n".join(table(["NAME", "EVENT", "CONDITION", "BY", "TO", "STATE"], rows)))
        for kind in ("problems", "warnings"):
            for line in found[kind]:
                click.echo(f"{kind[:-1]}: {line}", err=True)

    ask(work, as_json=as_json)


@triggers.command()
@click.argument("machine")
@click.argument("name")
@_READING
@_JSON
def explain(machine: str, name: str, reading: str, as_json: bool) -> None:
    """Show whether a reading would fire the trigger NAME of MACHINE, and why; the default is the latest one captured.

    Nothing is sent. The exit code is 1 if it would not fire.
    """
    given = _given(reading)
    verdict: list[bool] = []

    async def work(client: ApiClient) -> None:
        from runtime.engine.views.tables import clean, one_line, table

        found = await _ask(client, machine, "POST", "triggers", name, "explain", body=given)
        said = found["explanation"]
        if as_json:
            click.echo(one_line(found))
        else:
            click.echo(clean(f"{'it would fire' if said['fires'] else 'it would not fire'}: {said['reason']}"))
            rows = [
                ["holds" if one["holds"] else "does not hold", one["path"] or "reading", one["reason"]]
                for one in said["findings"]
            ]
            if rows:
                click.echo("\n".join(table(["", "FIELD", "WHY"], rows)))
        verdict.append(said["fires"])

    ask(work, as_json=as_json)
    sys.exit(0 if all(verdict) else 1)


@triggers.command()
@click.argument("machine")
@click.argument("name")
@click.option("--to", "value", default="", help="Only to the target with this URL or address.")
@_READING
@_JSON
@_QUIET
def test(machine: str, name: str, value: str, reading: str, as_json: bool, quiet: bool) -> None:
    """Send a test message to the targets of the trigger NAME of MACHINE, regardless of its conditions.

    It is sent once, without retries. `machine cloud triggers deliveries` lists it like other deliveries.
    """
    given = {**_given(reading), "value": value}

    async def work(client: ApiClient) -> None:
        from runtime.engine.views.tables import one_line

        found = await _ask(client, machine, "POST", "triggers", name, "test", body=given)
        if as_json:
            click.echo(one_line(found))
            return
        for one in found["deliveries"]:
            click.echo(one if quiet else f"delivery {one} is on its way")

    ask(work, as_json=as_json)


@triggers.command()
@click.argument("machine")
@click.argument("name")
def start(machine: str, name: str) -> None:
    """Resume sending to targets of the trigger NAME of MACHINE that were stopped because they answered 410 (Gone)."""

    async def work(client: ApiClient) -> None:
        await _ask(client, machine, "POST", "triggers", name, "start", body={})
        click.echo(f"{name} is sent to all its targets again")

    ask(work)


@triggers.command()
@click.argument("machine")
@click.argument("delivery", required=False)
@click.option("--trigger", default="", help="Only of this trigger.")
@click.option("--state", type=click.Choice(["waiting", "delivered", "failed"]), help="Only those.")
@click.option("-n", "count", type=click.IntRange(1, 500), default=20, show_default=True, help="So many, the newest.")
@_JSON
@_QUIET
def deliveries(
    machine: str, delivery: str | None, trigger: str, state: str | None, count: int, as_json: bool, quiet: bool
) -> None:
    """List the deliveries for MACHINE in the last 30 days, or all attempts of the one with the id DELIVERY."""

    async def work(client: ApiClient) -> None:
        from runtime.engine.views.tables import one_line, table

        if delivery:
            one = await _ask(client, machine, "GET", "deliveries", delivery)
            click.echo(one_line(one) if as_json else "\n".join(_delivery(one)))
            return
        query = {"trigger": trigger, "state": state, "limit": count}
        found = (await _ask(client, machine, "GET", "deliveries", **query))["deliveries"]
        if as_json:
            click.echo(one_line(found))
            return
        if quiet:
            click.echo("".join(f"{one['id']}\n" for one in found), nl=False)
            return
        rows = [
            [
                _clock(one["created"]),
                one["trigger"] + (" (test)" if one["test"] else ""),
                one["state"],
                str(one["attempts"]),
                one["target"],
                one["id"],
            ]
            for one in found
        ]
        click.echo("\n".join(table(["MADE", "TRIGGER", "STATE", "ATTEMPTS", "TARGET", "ID"], rows)))

    ask(work, as_json=as_json)


@triggers.command()
@click.argument("machine")
@click.argument("delivery")
def replay(machine: str, delivery: str) -> None:
    """Send DELIVERY of MACHINE again, with the same body and id."""

    async def work(client: ApiClient) -> None:
        await _ask(client, machine, "POST", "deliveries", delivery, "replay", body={})
        click.echo(f"delivery {delivery} is on its way")

    ask(work)


# ---- parsing and formatting


def _given(reading: str) -> dict[str, Any]:
    if not reading:
        return {}
    text = sys.stdin.read() if reading == "-" else reading
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--reading is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.UsageError('--reading is no JSON object: write such as {"temperature": 31.5}')
    return {"reading": found}


def _condition(condition: Mapping[str, Any]) -> str:
    if "evals" in condition:
        parts = [f"{one['operator']} {json.dumps(one['value'], ensure_ascii=False)}" for one in condition["evals"]]
        return " ".join([condition["data_capture_method"], " and ".join(parts)]).rstrip()
    return ", ".join(condition.get("data_types", condition.get("log_levels", ())))


def _state(target: Mapping[str, Any]) -> str:
    if target["stopped"]:
        return f"stopped: {target['stopped']}"
    return f"pausing until {_clock(target['until'])}" if target["until"] else "ready"


def _clock(text: str) -> str:
    """Return a time without fractions of seconds, such as `2026-01-02T03:04:05Z`."""
    return text.partition(".")[0].removesuffix("Z").removesuffix("+00:00") + "Z"


def _delivery(one: Mapping[str, Any]) -> Sequence[str]:
    from runtime.engine.views.tables import clean, table

    names = ("id", "trigger", "event", "type", "target", "state", "created", "next", "component", "method")
    facts = [[name, clean(str(one[name]))] for name in names if one.get(name)]
    attempts = [
        [
            str(try_["attempt"]),
            _clock(try_["started"]),
            f"{try_['seconds']:.2f} s",
            str(try_["status"] or ""),
            try_["error"],
        ]
        for try_ in one["tried"]
    ]
    lines = [f"{name:<10} {value}" for name, value in facts]
    if attempts:
        lines += ["", *table(["NO", "STARTED", "TOOK", "ANSWER", "WHAT WENT WRONG"], attempts)]
    if one["body"]:
        lines += ["", *(clean(line) for line in one["body"].splitlines())]
    return lines
