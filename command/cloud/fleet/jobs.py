"""Commands of `machine cloud fleet` that change many machines, and for the jobs that do it."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.fleet.selection import filter_of, filter_options, location_id, machine_ids
from command.cloud.group import with_client
from command.cloud.times import local
from command.output import json_option, print_json

if TYPE_CHECKING:
    from rpc.api import ApiClient

PROGRAMS: Final = ("machine-server", "machine-agent")
OUTCOMES: Final = ("changed", "unchanged", "failed", "skipped", "waiting")
_NO_WAIT: Final = click.option("--no-wait", is_flag=True, help="Do not wait until the job has ended.")
_JOB: Final = click.argument("job")
_OPTIONS: Final = (
    click.option("-m", "--machine", "machines", multiple=True, metavar="MACHINE", help="This one; can be repeated."),
    click.option("--every", is_flag=True, help="All machines."),
    click.option("--preview", is_flag=True, help="Only show what would change."),
    click.option("--yes", is_flag=True, help="Do not ask."),
    _NO_WAIT,
)

Work = dict[str, Any]


def _changes(work: Callable[..., Awaitable[Work]]) -> Callable[..., None]:
    """Return a command that does the work that `work` returns on selected machines, after a preview."""

    @functools.wraps(work)
    async def command(
        client: ApiClient,
        /,
        machines: tuple[str, ...],
        every: bool,
        preview: bool,
        yes: bool,
        no_wait: bool,
        as_json: bool,
        **options: Any,
    ) -> None:
        from rpc.api import FLEET

        conditions = await filter_of(client, options)
        if bool(machines) + bool(conditions) + every != 1:
            raise click.UsageError("select machines: with --machine, with conditions such as --tag, or with --every")
        selection: dict[str, Any] = {"every": True} if every else {"filter": conditions}
        if machines:
            selection = {"machine_ids": await machine_ids(client, machines)}
        arguments = {key: value for key, value in options.items() if key not in _FILTER_NAMES}
        selection["work"] = await work(client, **arguments)
        shown = await client.call(FLEET, "", "preview_fleet_job", **selection)
        if preview and as_json:
            print_json(shown)
            return
        if not as_json:
            _print_preview(shown)
        if preview or not shown["changing"]:
            return
        if not yes and as_json:
            raise click.UsageError("with --json, give --yes to start, or --preview")
        if not yes:
            click.confirm("Start?", abort=True)
        job = await client.call(FLEET, "", "start_fleet_job", **selection, expected=shown["selected"])
        await _follow(client, job, no_wait=no_wait, as_json=as_json)

    decorated: Callable[..., None] = json_option(with_client(command))
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return filter_options(decorated)


_FILTER_NAMES: Final = (
    "text",
    "location",
    "state",
    "agent_version",
    "server_version",
    "update",
    "problems",
    "tags",
    "fragment",
)


def _print_preview(shown: dict[str, Any]) -> None:
    from support.text.terminal import clean

    text = f"{shown['work']}: {shown['changing']} of {shown['examined']} machines would change"
    if shown["unchanged"]:
        text += f", {shown['unchanged']} have nothing to change"
    click.echo(clean(text))
    if shown["not_permitted"]:
        click.echo(f"{shown['not_permitted']} machines are left out: you do not own them")
    if shown["example"]:
        click.echo(clean(f"on {shown['example']}, for example:"))
        click.echo("".join(f"  {clean(line)}\n" for line in shown["difference"]), nl=False)
    for refusal in shown["refusals"]:
        click.echo(clean(f"{refusal['name']} cannot be changed: {refusal['reason']}"))


async def _follow(client: ApiClient, job: str, *, no_wait: bool, as_json: bool) -> None:
    """Wait for a job and print its outcome."""
    from rpc.api import FLEET

    state = (await client.call(FLEET, "", "get_fleet_job", id=job, limit=1))["job"]
    while not no_wait and state["state"] == "running":
        finished = state["changed"] + state["unchanged"] + state["failed"] + state["skipped"]
        if not as_json:
            click.echo(f"\r{finished} of {state['total']} machines", nl=False, err=True)
        state = await client.call(FLEET, "", "wait_for_fleet_job", id=job, finished=finished)
    if as_json:
        print_json(_plain(state))
        return
    if not no_wait:
        click.echo("", err=True)
    click.echo(_summary(state))
    if state["failed"]:
        await _print_machines(client, job, "failed")


def _summary(state: dict[str, Any]) -> str:
    from support.text.terminal import clean

    numbers = ", ".join(f"{state[name]} {name}" for name in OUTCOMES[:4] if state[name])
    return clean(f"job {state['id']}: {state['work']}: {state['state']}: {numbers or 'nothing yet'}")


async def _print_machines(client: ApiClient, job: str, state: str) -> None:
    from rpc.api import FLEET
    from support.text.terminal import table

    rows: list[list[str]] = []
    after = 0
    while True:
        reply = await client.call(FLEET, "", "get_fleet_job", id=job, state=state, after=after, limit=1000)
        rows += [[each["name"], each["state"], each["reason"]] for each in reply["machines"]]
        if len(reply["machines"]) < 1000:
            break
        after = reply["machines"][-1]["position"]
    if rows:
        click.echo("\n".join(table(["MACHINE", "OUTCOME", "REASON"], rows)))


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """Return a job with its times as texts."""
    times = {name: state[name].isoformat() if state.get(name) else None for name in ("created", "ended")}
    return {**state, **times}


# ---- work


@click.command("set")
@click.argument("path")
@click.argument("value")
@_changes
async def set_command(client: ApiClient, path: str, value: str) -> Work:
    """Set VALUE at PATH of configurations: `components.arm.attributes.speed 3`. VALUE is JSON, or else a text."""
    try:
        json.loads(value)
    except ValueError:
        value = json.dumps(value)
    return {"kind": "set_value", "path": path, "value_json": value}


@click.command("unset")
@click.argument("path")
@_changes
async def unset_command(client: ApiClient, path: str) -> Work:
    """Remove the value at PATH of configurations."""
    return {"kind": "remove_value", "path": path}


@click.command("apply")
@click.argument("fragment_id", metavar="FRAGMENT")
@click.option("--revision", default="", metavar="TAG", help="A revision or tag of the fragment.  [default: the newest]")
@_changes
async def apply_command(client: ApiClient, fragment_id: str, revision: str) -> Work:
    """Apply FRAGMENT (an id) to machines."""
    return {"kind": "add_fragment", "fragment_id": fragment_id, "fragment_version": revision}


@click.command("remove")
@click.argument("fragment_id", metavar="FRAGMENT")
@_changes
async def remove_command(client: ApiClient, fragment_id: str) -> Work:
    """Remove FRAGMENT (an id) from machines."""
    return {"kind": "remove_fragment", "fragment_id": fragment_id}


@click.command("pin")
@click.argument("program", type=click.Choice(PROGRAMS))
@click.argument("version")
@_changes
async def pin_command(client: ApiClient, program: str, version: str) -> Work:
    """Pin PROGRAM to VERSION: `stable`, `dev`, or a version such as 1.3.0."""
    return {"kind": "pin_version", "program": program, "version": version}


@click.command("add-tags")
@click.argument("names", metavar="TAGS", nargs=-1, required=True)
@_changes
async def add_tags_command(client: ApiClient, names: tuple[str, ...]) -> Work:
    """Add TAGS to machines."""
    return {"kind": "add_tags", "tags": list(names)}


@click.command("remove-tags")
@click.argument("names", metavar="TAGS", nargs=-1, required=True)
@_changes
async def remove_tags_command(client: ApiClient, names: tuple[str, ...]) -> Work:
    """Remove TAGS from machines."""
    return {"kind": "remove_tags", "tags": list(names)}


@click.command("move")
@click.argument("target", metavar="LOCATION")
@_changes
async def move_command(client: ApiClient, target: str) -> Work:
    """Move machines to LOCATION, a name or an id."""
    return {"kind": "move", "location_id": await location_id(client, target)}


@click.command("restart")
@_changes
async def restart_command(client: ApiClient) -> Work:
    """Restart the machine-server of machines. This cannot be undone."""
    return {"kind": "restart"}


# ---- jobs


@click.command("jobs")
@json_option
@with_client
async def jobs_command(client: ApiClient, as_json: bool) -> None:
    """List jobs, newest first."""
    from rpc.api import FLEET
    from support.text.terminal import table

    listed = await client.call(FLEET, "", "list_fleet_jobs")
    if as_json:
        print_json([_plain(each) for each in listed])
        return
    rows = [
        [
            local(each["created"], seconds=False),
            each["state"],
            str(each["changed"]),
            str(each["failed"]),
            str(each["total"]),
            each["work"],
            each["id"],
        ]
        for each in listed
    ]
    click.echo("\n".join(table(["STARTED", "STATE", "CHANGED", "FAILED", "MACHINES", "WORK", "ID"], rows)))


@click.command("show")
@_JOB
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only machines with this outcome.")
@json_option
@with_client
async def show_command(client: ApiClient, job: str, outcome: str | None, as_json: bool) -> None:
    """Show JOB (an id) with the outcome of each machine."""
    from rpc.api import FLEET

    state = (await client.call(FLEET, "", "get_fleet_job", id=job, limit=1))["job"]
    if as_json:
        print_json(_plain(state))
        return
    click.echo(_summary(state))
    await _print_machines(client, job, outcome or "")


@click.command("stop")
@_JOB
@with_client
async def stop_command(client: ApiClient, job: str) -> None:
    """Stop JOB (an id): machines that it has not changed yet are skipped."""
    from rpc.api import FLEET

    await client.call(FLEET, "", "stop_fleet_job", id=job)
    click.echo("the job was stopped")


@click.command("undo")
@_JOB
@_NO_WAIT
@json_option
@with_client
async def undo_command(client: ApiClient, job: str, no_wait: bool, as_json: bool) -> None:
    """Undo JOB (an id) on each machine that is still as the job left it."""
    from rpc.api import FLEET

    new = await client.call(FLEET, "", "revert_fleet_job", id=job)
    await _follow(client, new, no_wait=no_wait, as_json=as_json)
