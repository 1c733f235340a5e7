"""`machine cloud config`: reads, changes, compares and reverts a machine's configuration."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP, ask, current, find
from command.groups import Commands
from schema.decoding.depth import check_depth, nested_too_deeply
from schema.errors import ConfigError

if TYPE_CHECKING:
    from command.cloud.show import Part
    from rpc.api.client import ApiClient

_REVISION: Final = click.IntRange(1, 999_999_999)


@click.group(cls=Commands)
def config() -> None:
    """Manage a machine's configuration and its history."""


@config.command()
@click.argument("machine")
def get(machine: str) -> None:
    """Print the configuration of MACHINE."""

    async def work(client: ApiClient) -> None:
        from command.cloud.show import document_text

        click.echo(document_text((await current(client, await find(client, machine)))["config_json"]))

    ask(work)


@config.command("set")
@click.argument("machine")
@click.argument("file", type=click.File("rb"))
@click.option("--yes", is_flag=True, help="Save without asking, and whatever mistakes it has.")
def set_command(machine: str, file: Any, yes: bool) -> None:
    """Save FILE (- for standard input) as the configuration of MACHINE, after showing the changes."""
    data: bytes = file.read()

    async def work(client: ApiClient) -> None:
        part = await find(client, machine)
        await _save(client, part, await current(client, part), data.decode(errors="replace"), ask_first=not yes)

    ask(work)


@config.command()
@click.argument("machine")
def edit(machine: str) -> None:
    """Open the configuration of MACHINE in $EDITOR, show the changes, and save it."""

    async def work(client: ApiClient) -> None:
        from command.cloud.show import document_text

        part = await find(client, machine)
        before = await current(client, part)
        text = document_text(before["config_json"])
        while True:
            edited = click.edit(text, extension=".json")
            if edited is None or edited == text:
                click.echo("nothing changed")
                return
            found = mistakes(edited)
            if not found.serious or not click.confirm(f"{found.text}\nEdit it again?", default=True):
                break
            text = edited
        await _save(client, part, before, edited, ask_first=True)

    ask(work)


@config.command()
@click.argument("machine")
@click.argument("file", type=click.File("rb"), required=False)
@click.option("--from", "old", type=_REVISION, help="From this revision; from the one in force by default.")
@click.option("--to", "new", type=_REVISION, help="To this revision, instead of to FILE or to the one in force.")
def diff(machine: str, file: Any, old: int | None, new: int | None) -> None:
    """Show what would change if FILE, or a revision, became the configuration of MACHINE. Secrets are masked.

    With --from, show what has changed since that revision.
    """
    if file is not None and new is not None:
        raise click.UsageError("compare with FILE or with --to, not with both")
    if file is None and new is None and old is None:
        raise click.UsageError("name a FILE (- for standard input), or a revision with --from or --to")
    wanted = _document(file.read().decode(errors="replace")) if file is not None else None

    async def work(client: ApiClient) -> None:
        from command.cloud.show import changes

        part = await find(client, machine)
        if wanted is not None and old is None:
            before = json.loads((await current(client, part))["config_json"])
        else:
            before = await _document_of(part, old)
        after = wanted if wanted is not None else await _document_of(part, new)
        click.echo("\n".join(changes(before, after)) or "no difference")

    ask(work)


@config.command()
@click.argument("machine")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many, the newest.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON, for programs.")
def history(machine: str, count: int, as_json: bool) -> None:
    """Show who changed what and when, newest first. `revert` and `diff` accept the number of a revision."""

    async def work(client: ApiClient) -> None:
        from command.cloud.configurations.history import revisions
        from command.cloud.show import history as lines
        from command.cloud.show import saves
        from runtime.engine.views.tables import one_line

        part = await find(client, machine)
        found = saves(await revisions("parts", part.id, count + 1))[:count]
        click.echo(one_line(found) if as_json else "\n".join(lines(found)))

    ask(work, as_json=as_json)


@config.command()
@click.argument("machine")
@click.argument("revision", type=_REVISION, required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
def revert(machine: str, revision: int | None, yes: bool) -> None:
    """Make a REVISION in `history` the configuration of MACHINE again; the default is the previous one."""

    async def work(client: ApiClient) -> None:
        from command.cloud.configurations.history import revisions

        part = await find(client, machine)
        before = await current(client, part)
        wanted = revision or (await revisions("parts", part.id, 1))[0]["revision"] - 1
        if not wanted:
            raise click.ClickException(f"there is nothing to go back to: {part.machine} was never changed")
        text = json.dumps(await _document_of(part, wanted))
        await _save(client, part, before, text, ask_first=not yes)

    ask(work)


async def _document_of(part: Part, number: int | None) -> Any:
    """Return the configuration of a revision, by default the newest one. Only owners get secrets."""
    from command.cloud.configurations.history import revision, revisions

    found = await revision("parts", part.id, number) if number else (await revisions("parts", part.id, 1))[0]
    return found["document"]


async def _save(client: ApiClient, part: Part, before: Any, text: str, *, ask_first: bool) -> None:
    """Show the changes, ask for confirmation if `ask_first`, and save, unless there is a newer revision.

    `before` is the reply of GetRobotPart. Raises click.UsageError if a confirmation is required without a terminal.
    """
    from command.cloud.show import changes

    lines = changes(json.loads(before["config_json"]), _document(text))
    click.echo("\n".join(lines) or "nothing changed")
    if not lines:
        return
    found = mistakes(text)
    if found.text:
        click.echo(found.text, err=True)
    if ask_first:
        if not sys.stdin.isatty():
            raise click.UsageError("nobody is there to be asked: use a terminal, or `set` or `revert` with --yes")
        click.confirm(f"Save it for {part.machine}?", default=not found.serious, abort=True)
    known = before["part"]["last_updated"]
    await client.call(
        APP, "", "update_robot_part", id=part.id, name="", robot_config_json=text, last_known_update=known
    )
    click.echo("saved")


def _document(text: str) -> Any:
    try:
        document = json.loads(text)
        check_depth(document)
    except RecursionError:
        raise click.ClickException(str(nested_too_deeply())) from None
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:
        raise click.ClickException(f"this is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise click.ClickException("this is no JSON object: write {...}")
    return document


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Errors and warnings of a configuration."""

    text: str
    """A line for each error and warning; empty if there are none."""
    serious: bool
    """Whether there are errors, not only warnings."""


def mistakes(text: str) -> Mistakes:
    """Check a configuration like the pages of the cloud, but without looking up names in fragments."""
    from catalogue.check import check, in_cloud
    from catalogue.models import builtin
    from schema.document.machine import CLOUD_KEYS, decode

    decoded = decode(text.encode())
    checked = check(decoded, builtin(), in_cloud(json.loads(text) if decoded.readable is not None else None))
    warnings = (one for one in checked.warnings if one.path not in CLOUD_KEYS)
    lines = [*(f"mistake: {one}" for one in checked.problems), *(f"warning: {one}" for one in warnings)]
    return Mistakes("\n".join(lines), bool(checked.problems))
