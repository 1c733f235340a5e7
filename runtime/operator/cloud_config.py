"""`machine cloud config`: a machine's configuration, read, changed, compared and taken back."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from runtime.operator.cloud import APP, ask, current, find

if TYPE_CHECKING:
    from rpc.api.client import ApiClient
    from runtime.operator.cloud_show import Part


@click.group()
def config() -> None:
    """A machine's configuration and its history."""


@config.command()
@click.argument("machine")
def get(machine: str) -> None:
    """Print the configuration of MACHINE."""

    async def work(client: ApiClient) -> None:
        from runtime.operator.cloud_show import document_text

        click.echo(document_text((await current(client, await find(client, machine)))["config_json"]))

    ask(work)


@config.command("set")
@click.argument("machine")
@click.argument("file", type=click.File("rb"))
@click.option("--yes", is_flag=True, help="Save without asking, and whatever mistakes it has.")
def set_command(machine: str, file: Any, yes: bool) -> None:
    """Make FILE (- for standard input) the configuration of MACHINE, after showing what would change."""
    data: bytes = file.read()

    async def work(client: ApiClient) -> None:
        part = await find(client, machine)
        await _save(client, part, await current(client, part), data.decode(errors="replace"), ask_first=not yes)

    ask(work)


@config.command()
@click.argument("machine")
def edit(machine: str) -> None:
    """Open the configuration of MACHINE in $EDITOR, show what changed, and save it."""

    async def work(client: ApiClient) -> None:
        from runtime.operator.cloud_show import document_text

        part = await find(client, machine)
        before = await current(client, part)
        text = document_text(before["config_json"])
        while True:
            edited = click.edit(text, extension=".json")
            if edited is None or edited == text:
                click.echo("nothing changed")
                return
            problems = mistakes(edited)
            if not problems or not click.confirm(f"{problems}\nEdit it again?", default=True):
                break
            text = edited
        await _save(client, part, before, edited, ask_first=True)

    ask(work)


@config.command()
@click.argument("machine")
@click.argument("file", type=click.File("rb"))
def diff(machine: str, file: Any) -> None:
    """What would change if FILE became the configuration of MACHINE. Secrets are masked."""
    wanted = _document(file.read().decode(errors="replace"))

    async def work(client: ApiClient) -> None:
        from runtime.operator.cloud_show import changes

        before = await current(client, await find(client, machine))
        lines = changes(json.loads(before["config_json"]), wanted)
        click.echo("\n".join(lines) or "no difference")

    ask(work)


@config.command()
@click.argument("machine")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many, the newest.")
def history(machine: str, count: int) -> None:
    """Who changed what and when, the newest first; `revert` takes the number."""

    async def work(client: ApiClient) -> None:
        from runtime.operator.cloud_show import history as lines

        part = await find(client, machine)
        page = await client.call(APP, "", "get_robot_part_history", id=part.id, page_limit=count)
        now = json.loads((await current(client, part))["config_json"])
        click.echo("\n".join(lines(page["history"], now)) or "it was never changed")

    ask(work)


@config.command()
@click.argument("machine")
@click.argument("number", type=click.IntRange(1, 1000), default=1)
@click.option("--yes", is_flag=True, help="Do not ask.")
def revert(machine: str, number: int, yes: bool) -> None:
    """Take back the newest save of MACHINE, or all up to the one with this NUMBER in `history`."""

    async def work(client: ApiClient) -> None:
        from runtime.operator.cloud_show import was

        part = await find(client, machine)
        page = await client.call(APP, "", "get_robot_part_history", id=part.id, page_limit=number)
        if len(page["history"]) < number:
            raise click.ClickException(f"{part.machine} was saved {len(page['history'])} times only")
        text = json.dumps(was(page["history"][number - 1]))
        await _save(client, part, await current(client, part), text, ask_first=not yes)

    ask(work)


async def _save(client: ApiClient, part: Part, before: Any, text: str, *, ask_first: bool) -> None:
    """Show what changes, ask if somebody is there, and save it unless somebody else was faster."""
    from runtime.operator.cloud_show import changes

    lines = changes(json.loads(before["config_json"]), _document(text))
    click.echo("\n".join(lines) or "nothing changed")
    if not lines:
        return
    problems = mistakes(text)
    if problems:
        click.echo(problems, err=True)
    if ask_first:
        if not sys.stdin.isatty():
            raise click.UsageError("nobody is there to be asked: use a terminal, or `set` or `revert` with --yes")
        click.confirm(f"Save it for {part.machine}?", default=not problems, abort=True)
    known = before["part"]["last_updated"]
    await client.call(
        APP, "", "update_robot_part", id=part.id, name="", robot_config_json=text, last_known_update=known
    )
    click.echo("saved")


def _document(text: str) -> Any:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise click.ClickException(f"this is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise click.ClickException("this is no JSON object: write {...}")
    return document


def mistakes(text: str) -> str:
    """What is wrong with a configuration, a line each; empty if nothing was found."""
    from schema.machine import decode

    return "\n".join(f"mistake: {problem}" for problem in decode(text.encode()).problems)
