"""`machine cloud rollouts`: changes of fragments and versions, a few machines first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from agent import PROGRAMS
from command.cloud.group import with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.times import with_texts
from command.groups import Commands
from command.output import json_option, print_json
from schema import CountOrShare, MachineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpc.api import ApiClient

STATES: Final = (
    *("pending", "waiting", "offline", "late", "updated", "healthy", "failed", "skipped", "returning", "returned"),
)
OUTCOMES: Final = {"finished": 0, "stopped": 3, "reverted": 4}
"""Exit status of `follow` by the state in which a rollout ends."""
_ROLLOUT: Final = click.argument("rollout")


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine cloud fragments set arms arms.json --for-rollout
  machine cloud rollouts start arms --stage tag:lab --stage 5 --stage 100 --stop-after 2
  machine cloud rollouts start machine-server 1.2.0 --stage 10 --stage 100
  machine cloud rollouts show arms
  machine cloud rollouts follow arms
  machine cloud rollouts back arms""",
)
def rollouts() -> None:
    """Give a revision of a fragment, or a version of a program, to a few machines first.

    ROLLOUT is an id, or the name of the fragment or program; of several, the newest open one.
    """


@rollouts.command()
@click.argument("what", metavar="FRAGMENT|PROGRAM")
@click.argument("revision", required=False, default="")
@click.option("--tag-to-move", "channel", default="", metavar="TAG", help="Move this tag of the fragment.")
@click.option(
    "--stage", "stages", multiple=True, metavar="PERCENT|tag:TAG", help="A stage; repeated, in order. [default: 100]"
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only machines with this tag, or any of several.")
@click.option("--location", "location_ids", multiple=True, metavar="ID", help="Only machines there or below.")
@click.option("--stop-after", default="", metavar="N|PERCENT",
              help="Stop when more machines failed: a number, or a share of the selected ones such as 5%.")  # fmt: skip
@click.option("--soak", type=click.IntRange(0), default=600, show_default=True, metavar="SECONDS",
              help="How long a machine must be healthy.")  # fmt: skip
@click.option("--by-hand", is_flag=True, help="Reach the next stage only by `next`.")
@click.option("--preview", is_flag=True, help="Only show how many machines each stage has.")
@ORGANIZATION
@json_option
@with_client
async def start(
    client: ApiClient, /, what: str, revision: str, organization: str, preview: bool, as_json: bool, **options: Any
) -> None:
    """Start the rollout of REVISION of FRAGMENT (the newest one by default), or of the version REVISION of PROGRAM."""
    from rpc.api import ROLLOUTS

    owner = (await organization_of(client, organization))["id"]
    limit = _limit(options["stop_after"])
    plan = await _plan(client, what, revision, options) | {"stop_after": limit.number if limit else None}
    shown = expected = None
    by_share = limit is not None and limit.share is not None
    if preview or by_share:
        shown = await client.call(ROLLOUTS, "", "preview_staged_rollout", organization_id=owner, plan=plan)
    if shown and limit and by_share:  # the cloud counts machines; it refuses the start if their number has changed
        expected = shown["selected"]
        plan["stop_after"] = limit.of(expected)
    if shown and preview:
        if as_json:
            print_json(shown)
        else:
            click.echo(_previewed(shown))
            if plan["stop_after"] is not None:
                click.echo(f"it stops when more than {plan['stop_after']} machines fail")
        return
    created = await client.call(
        ROLLOUTS, "", "start_staged_rollout", organization_id=owner, plan=plan, expected=expected
    )
    if as_json:
        print_json({"id": created})
    else:
        click.echo(created)


async def _plan(client: ApiClient, what: str, revision: str, options: Mapping[str, Any]) -> dict[str, Any]:
    if what in PROGRAMS:
        if not revision:
            raise click.UsageError(f"give the version of {what}")
        kind, subject = "program", what
    else:
        from command.cloud.configurations.fragments import find

        chosen = await find(client, what)
        kind, subject, revision = "fragment", chosen["id"], revision or chosen["revision"]
    return {
        "kind": kind,
        "subject": subject,
        "revision": revision,
        "channel": options["channel"],
        "stages": [_stage(text) for text in options["stages"] or ("100",)],
        "tags": list(options["tags"]),
        "location_ids": list(options["location_ids"]),
        "soak_seconds": options["soak"],
        "by_hand": options["by_hand"],
    }


def _limit(text: str) -> CountOrShare | None:
    try:
        return CountOrShare.parse(text) if text else None
    except MachineError as error:
        raise click.UsageError(f"--stop-after: {error.message}") from None


def _stage(text: str) -> dict[str, Any]:
    """Return a stage from `10`, `10%`, `tag:lab` or `10%:lab`."""
    share, _, tag = text.partition(":")
    try:
        percent = 100.0 if share == "tag" else float(share.removesuffix("%"))
    except ValueError:
        raise click.UsageError(f"{text!r} is not a stage: write a share such as 10, or tag:lab") from None
    if percent <= 0 or (share == "tag" and not tag):
        raise click.UsageError(f"{text!r} is not a stage: write a share above 0, or a tag after tag:")
    return {"percent": percent, "tags": [tag] if tag else []}


def _previewed(shown: Mapping[str, Any]) -> str:
    from support.text.terminal import clean, table

    before = f" (machines have {shown['revision_from']})" if shown["revision_from"] else ""
    lines = [
        clean(
            f"{shown['called']} {shown['revision_to']}{before}: {shown['selected']} of {shown['concerned']} machines"
        ),
        *table(["STAGE", "MACHINES"], [[each["stage"], str(each["machines"])] for each in shown["stages"]]),
    ]
    if shown["elsewhere"]:
        lines.append(f"{shown['elsewhere']} machines of other organizations get it when the rollout is finished")
    return "\n".join(lines)


@rollouts.command("ls")
@ORGANIZATION
@json_option
@with_client
async def list_command(client: ApiClient, organization: str, as_json: bool) -> None:
    """List open rollouts and those that ended, newest first."""
    from support.text.terminal import table

    listed = await _all(client, (await organization_of(client, organization))["id"])
    if as_json:
        print_json(with_texts(listed))
    elif not listed:
        click.echo("no rollouts: start one with `machine cloud rollouts start`")
    else:
        rows = [
            [_named(each), each["state"], f"{each['stage'] + 1}/{len(each['stages'])}", *_numbers(each), each["id"]]
            for each in listed
        ]
        click.echo("\n".join(table(["ROLLOUT", "STATE", "STAGE", "HEALTHY", "FAILED", "OFFLINE", "OF", "ID"], rows)))


@rollouts.command()
@_ROLLOUT
@ORGANIZATION
@json_option
@with_client
async def show(client: ApiClient, rollout: str, organization: str, as_json: bool) -> None:
    """Show a rollout: its stages, what it waits for, and what happened."""
    from rpc.api import ROLLOUTS
    from support.text.terminal import clean, table

    owner = (await organization_of(client, organization))["id"]
    subject = await _find(client, owner, rollout)
    reply = await client.call(ROLLOUTS, "", "get_staged_rollout", organization_id=owner, id=subject)
    if as_json:
        print_json(with_texts(reply))
        return
    entry = reply["rollout"]
    why = entry["reason"] or entry["next"]
    click.echo(clean(f"{_named(entry)}: {entry['state']}{f': {why}' if why else ''}"))
    names = ("machines", "waiting", "updated", "healthy", "failed", "offline", "others")
    rows = [[each["stage"], each["state"], *(str(each[name]) for name in names)] for each in entry["stages"]]
    click.echo("\n".join(table(["STAGE", "STATE", *(name.upper() for name in names)], rows)))
    for event in with_texts(reply["events"]):
        who = f" by {event['author']}" if event["author"] else ""
        click.echo(clean(f"{event['happened']} {event['kind']} {event['detail']}".rstrip() + who))


@rollouts.command()
@_ROLLOUT
@ORGANIZATION
@json_option
@with_client
async def follow(client: ApiClient, rollout: str, organization: str, as_json: bool) -> None:
    """Show the progress of a rollout until it ends, or only waits for `finish`.

    The exit status is 0 if all machines have it, or all that were selected, 3 if the rollout was stopped, and 4 if it
    was taken back. It waits while the rollout is paused.
    """
    from rpc.api import ROLLOUTS
    from support.text.terminal import clean

    owner = (await organization_of(client, organization))["id"]
    where = {"organization_id": owner, "id": await _find(client, owner, rollout)}
    seen, before = "", ""
    while True:
        reply = await client.call(ROLLOUTS, "", "wait_for_staged_rollout", **where, seen=seen)
        entry, seen = reply["rollout"], reply["seen"]
        line = _progress(entry)
        if line != before and not as_json:
            click.echo(clean(line))
        before = line
        if (status := _outcome(entry)) is not None:
            break
    if as_json:
        print_json(with_texts(entry))
    sys.exit(status)


def _progress(entry: Mapping[str, Any]) -> str:
    """Return the state of a rollout in a line."""
    healthy, failed, offline, total = _numbers(entry)
    stage = f"stage {entry['stage'] + 1} of {len(entry['stages'])}"
    numbers = f"{healthy} of {total} machines healthy, {failed} failed, {offline} offline"
    why = entry["reason"] or entry["next"]
    return f"{_named(entry)}: {entry['state']}, {stage}: {numbers}{f': {why}' if why else ''}"


def _outcome(entry: Mapping[str, Any]) -> int | None:
    """Return the exit status of `follow`; None while the rollout goes on."""
    if (status := OUTCOMES.get(entry["state"])) is not None:
        return status
    last = entry["stages"][-1]
    reached = entry["state"] == "active" and last["state"] == "current"
    return 0 if reached and last["healthy"] and not last["waiting"] and not last["updated"] else None


@rollouts.command()
@_ROLLOUT
@click.option("--state", type=click.Choice(STATES), help="Only machines in this state.")
@ORGANIZATION
@json_option
@with_client
async def machines(client: ApiClient, rollout: str, state: str | None, organization: str, as_json: bool) -> None:
    """List the machines of a rollout, with the reasons of those that failed."""
    from rpc.api import ROLLOUTS
    from support.text.terminal import table

    owner = (await organization_of(client, organization))["id"]
    where = {"organization_id": owner, "id": await _find(client, owner, rollout), "state": state or "", "limit": 1000}
    listed: list[dict[str, Any]] = []
    token = ""
    while True:
        page = await client.call(ROLLOUTS, "", "list_staged_machines", **where, page_token=token)
        listed += page["machines"]
        if not (token := page["next_page_token"]):
            break
    if as_json:
        print_json(with_texts(listed))
        return
    rows = [[each["name"], str(each["stage"] + 1), each["state"], each["reason"]] for each in listed]
    click.echo("\n".join(table(["MACHINE", "STAGE", "STATE", "REASON"], rows)))


def _action(name: str, text: str) -> Callable[..., None]:
    """Return the command that does an action."""

    @rollouts.command(name, help=text)
    @_ROLLOUT
    @ORGANIZATION
    @json_option
    @with_client
    async def command(client: ApiClient, rollout: str, organization: str, as_json: bool) -> None:
        from rpc.api import ROLLOUTS
        from support.text.terminal import clean

        owner = (await organization_of(client, organization))["id"]
        subject = await _find(client, owner, rollout)
        changed = await client.call(
            ROLLOUTS, "", "change_staged_rollout", organization_id=owner, id=subject, action=name
        )
        if as_json:
            print_json(with_texts(changed))
        else:
            stage = f"stage {changed['stage'] + 1} of {len(changed['stages'])}"
            click.echo(clean(f"{_named(changed)}: {changed['state']}, {stage}"))

    return command


_action("pause", "Pause a rollout: machines that have the change keep it, no further machine gets it.")
_action("resume", "Go on with a rollout that is paused or stopped. Failures count from zero.")
_action("next", "Reach the next stage now.")
_action("stop", "Stop a rollout. Like `pause`, but listed as stopped; `resume` continues it.")
_action("finish", "Give the change to all machines, also those that were not selected.")
_action("back", "Take the change back: all machines return to what they had before, at once.")


async def _all(client: ApiClient, owner: str) -> list[dict[str, Any]]:
    from rpc.api import ROLLOUTS

    listed: list[dict[str, Any]] = await client.call(ROLLOUTS, "", "list_staged_rollouts", organization_id=owner)
    return listed


async def _find(client: ApiClient, owner: str, name: str) -> str:
    """Return the id of a rollout by its id or the name of what is rolled out."""
    listed = await _all(client, owner)
    match = next((each for each in listed if name in (each["id"], each["called"], each["subject"])), None)
    if match is None:
        names = ", ".join(dict.fromkeys(each["called"] for each in listed)) or "none"
        raise click.ClickException(f"there is no rollout {name!r} (there are {names})")
    return str(match["id"])


def _named(entry: Mapping[str, Any]) -> str:
    from support.text.terminal import clean

    tag = f" ({entry['channel']})" if entry["channel"] else ""
    before = f"{entry['revision_from']} -> " if entry["revision_from"] else ""
    return clean(f"{entry['called']}{tag} {before}{entry['revision_to']}")


def _numbers(entry: Mapping[str, Any]) -> list[str]:
    totals = [sum(stage[name] for stage in entry["stages"]) for name in ("healthy", "failed", "offline")]
    return [str(number) for number in (*totals, entry["total"])]
