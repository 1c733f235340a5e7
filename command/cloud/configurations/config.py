"""`machine cloud config`: reads, changes, compares and reverts a machine's configuration."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP, current, find, run_with_client, with_client
from command.groups import Commands
from command.output import json_option, print_json
from schema import ConfigError
from schema.decoding import check_depth, nested_too_deeply

if TYPE_CHECKING:
    from command.cloud.show import Part
    from rpc.api import ApiClient

_REVISION: Final = click.IntRange(1, 999_999_999)


@click.group(cls=Commands)
def config() -> None:
    """Manage a machine's configuration and its history."""


@config.command()
@click.argument("machine")
@with_client
async def get(client: ApiClient, machine: str) -> None:
    """Print the configuration of MACHINE."""
    from command.cloud.show import document_text

    click.echo(document_text((await current(client, await find(client, machine)))["config_json"]))


@config.command("set")
@click.argument("machine")
@click.argument("file", type=click.File("rb"))
@click.option("--yes", is_flag=True, help="Save without asking, even if there are mistakes.")
@with_client
async def set_command(client: ApiClient, machine: str, file: Any, yes: bool) -> None:
    """Save FILE (- for standard input) as the configuration of MACHINE, after showing the changes."""
    data: bytes = file.read()
    part = await find(client, machine)
    await save(client, part, await current(client, part), data.decode(errors="replace"), ask_first=not yes)


@config.command()
@click.argument("machine")
@with_client
async def edit(client: ApiClient, machine: str) -> None:
    """Open the configuration of MACHINE in $EDITOR, show the changes, and save it."""
    from command.cloud.show import document_text

    part = await find(client, machine)
    before = await current(client, part)
    text = document_text(before["config_json"])
    while True:
        edited = click.edit(text, extension=".json")
        if edited is None or edited == text:
            click.echo("nothing changed")
            return
        findings = mistakes(edited)
        if not findings.serious or not click.confirm(f"{findings.text}\nEdit it again?", default=True):
            break
        text = edited
    await save(client, part, before, edited, ask_first=True)


@config.command()
@click.argument("machine")
@click.argument("file", type=click.File("rb"), required=False)
@click.option("--from", "old", type=_REVISION, help="From this revision; by default the newest one.")
@click.option("--to", "new", type=_REVISION, help="To this revision, instead of FILE or the newest one.")
def diff(machine: str, file: Any, old: int | None, new: int | None) -> None:
    """Show what would change if FILE, or a revision, became the configuration of MACHINE. Secrets are masked.

    With --from, show what has changed since that revision.
    """
    if file is not None and new is not None:
        raise click.UsageError("compare with FILE or with --to, not with both")
    if file is None and new is None and old is None:
        raise click.UsageError("give FILE (- for standard input), or a revision with --from or --to")
    given_document = _document(file.read().decode(errors="replace")) if file is not None else None

    async def work(client: ApiClient) -> None:
        from command.cloud.show import changes

        part = await find(client, machine)
        if given_document is not None and old is None:
            before = json.loads((await current(client, part))["config_json"])
        else:
            before = await _document_of(client, part, old)
        after = given_document if given_document is not None else await _document_of(client, part, new)
        click.echo("\n".join(changes(before, after)) or "no difference")

    run_with_client(work)


@config.command()
@click.argument("machine")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of revisions.")
@json_option
@with_client
async def history(client: ApiClient, machine: str, count: int, as_json: bool) -> None:
    """Show who changed what and when, newest first. `revert` and `diff` accept the number of a revision."""
    from command.cloud.configurations.history import revisions
    from command.cloud.show import history as lines
    from command.cloud.show import saves

    part = await find(client, machine)
    saved_revisions = saves(await revisions(client, "parts", part.id, count + 1))[:count]
    if as_json:
        print_json(saved_revisions)
    else:
        click.echo("\n".join(lines(saved_revisions)))


@config.command()
@click.argument("machine")
@click.argument("revision", type=_REVISION, required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_client
async def revert(client: ApiClient, machine: str, revision: int | None, yes: bool) -> None:
    """Make a REVISION in `history` the configuration of MACHINE again; the default is the previous one."""
    from command.cloud.configurations.history import revisions

    part = await find(client, machine)
    before = await current(client, part)
    target = revision or (await revisions(client, "parts", part.id, 1))[0]["revision"] - 1
    if not target:
        raise click.ClickException(
            f"there is no previous revision: the configuration of {part.machine} was never changed"
        )
    text = json.dumps(await _document_of(client, part, target))
    await save(client, part, before, text, ask_first=not yes)


async def _document_of(client: ApiClient, part: Part, number: int | None) -> Any:
    """Return the configuration of a revision, by default the newest one. Only owners get secrets."""
    from command.cloud.configurations.history import revision, revisions

    newest = (
        await revision(client, "parts", part.id, number)
        if number
        else (await revisions(client, "parts", part.id, 1))[0]
    )
    return newest["document"]


async def save(client: ApiClient, part: Part, before: Any, text: str, *, ask_first: bool) -> None:
    """Show the changes, ask for confirmation if `ask_first`, and save, unless there is a newer revision.

    `before` is the reply of GetRobotPart. Raises click.UsageError if a confirmation is required without a terminal.
    """
    from command.cloud.show import changes

    lines = changes(json.loads(before["config_json"]), _document(text))
    click.echo("\n".join(lines) or "nothing changed")
    if not lines:
        return
    findings = mistakes(text)
    if findings.text:
        click.echo(findings.text, err=True)
    if ask_first:
        if not sys.stdin.isatty():
            raise click.UsageError("confirmation needs a terminal: use one, or add --yes (not for `edit`)")
        click.confirm(f"Save it for {part.machine}?", default=not findings.serious, abort=True)
    last_update = before["part"]["last_updated"]
    await client.call(
        APP, "", "update_robot_part", id=part.id, name="", robot_config_json=text, last_known_update=last_update
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
        raise click.ClickException(f"the configuration is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise click.ClickException("the configuration is not a JSON object: write {...}")
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
    from models import builtin_models, check_document, in_cloud
    from schema.document import CLOUD_KEYS, decode_document

    decoded = decode_document(text.encode())
    checked = check_document(
        decoded, builtin_models(), in_cloud(json.loads(text) if decoded.readable is not None else None)
    )
    warnings = (finding for finding in checked.warnings if finding.path not in CLOUD_KEYS)
    lines = [*(f"mistake: {finding}" for finding in checked.problems), *(f"warning: {finding}" for finding in warnings)]
    return Mistakes("\n".join(lines), bool(checked.problems))
