"""`machine cloud fragments`: manages configuration that many machines share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from command.cloud.group import APP, is_called, with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.groups import Commands
from command.output import json_option
from schema import ConfigError
from schema.decoding import check_depth, nested_too_deeply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpc.api import ApiClient


@click.group(cls=Commands)
def fragments() -> None:
    """Manage configuration that many machines share. FRAGMENT is a name or an id.

    A machine uses a fragment by an entry in `fragments` of its configuration: {"id": ID, "version": "stable"}.
    """


@fragments.command("ls")
@click.option("--public", is_flag=True, help="Also list public fragments of other organizations.")
@json_option
@with_client
async def list_command(client: ApiClient, public: bool, as_json: bool) -> None:
    """List fragments, with the number of machines that use them."""
    from support.text.terminal import one_line, table

    available = await _all(client, public=public)
    if as_json:
        click.echo("\n".join(one_line({**fragment, "fragment": None}) for fragment in available))
        return
    rows = [
        [
            fragment["name"],
            fragment["revision"],
            fragment["visibility"].lower(),
            str(fragment["robot_part_count"]),
            fragment["id"],
        ]
        for fragment in available
    ]
    click.echo("\n".join(table(["NAME", "REVISION", "VISIBILITY", "PARTS", "ID"], rows)))


@fragments.command()
@click.argument("fragment")
@click.option("--version", default="", metavar="REVISION|TAG", help="Revision; the newest one by default.")
@with_client
async def get(client: ApiClient, fragment: str, version: str) -> None:
    """Print the configuration in FRAGMENT."""
    from command.cloud.show import document_text

    subject = (await find(client, fragment))["id"]
    reply = await client.call(APP, "", "get_fragment", id=subject, version=version or None)
    click.echo(document_text(reply["fragment"]["fragment_config_json"]))


@fragments.command()
@click.argument("name")
@click.argument("file", type=click.File("rb"))
@ORGANIZATION
@with_client
async def create(client: ApiClient, name: str, file: Any, organization: str) -> None:
    """Create a fragment called NAME from FILE (- for standard input), and print its id."""
    document = _document(file.read())
    owner = (await organization_of(client, organization))["id"]
    created = await client.call(APP, "", "create_fragment", name=name, config=document, organization_id=owner)
    click.echo(created["id"])


@fragments.command("set")
@click.argument("fragment")
@click.argument("file", type=click.File("rb"))
@click.option("--for-rollout", is_flag=True, help="Give it to no machine: `machine cloud rollouts start` does.")
@with_client
async def set_command(client: ApiClient, fragment: str, file: Any, for_rollout: bool) -> None:
    """Make FILE (- for standard input) the newest revision. Machines without a pinned version use it immediately."""
    document = _document(file.read())
    current = await find(client, fragment)
    text = json.dumps(document, ensure_ascii=False)
    last_update = current["last_updated"]
    if for_rollout:
        from rpc.api import ROLLOUTS

        number = await client.call(
            ROLLOUTS,
            "",
            "update_fragment_for_rollout",
            fragment_id=current["id"],
            fragment_config_json=text,
            last_known_update=last_update,
        )
        click.echo(f"revision {number}: start its rollout with `machine cloud rollouts start {current['name']}`")
        return
    saved = await client.call(
        APP,
        "",
        "update_fragment",
        id=current["id"],
        name="",
        fragment_config_json=text,
        last_known_update=last_update,
    )
    click.echo(f"revision {saved['revision']}, used by {saved['robot_part_count']} machine parts")


@fragments.command()
@click.argument("fragment")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of revisions.")
@with_client
async def history(client: ApiClient, fragment: str, count: int) -> None:
    """Show who saved FRAGMENT and when, newest first."""
    from command.cloud.configurations.history import revisions
    from support.text.terminal import table

    subject = (await find(client, fragment))["id"]
    tags = (await client.call(APP, "", "get_fragment", id=subject))["tags"]
    rows = [
        [
            str(revision["revision"]),
            revision["saved"].partition(".")[0].removesuffix("+00:00") + "Z",
            revision["author"],
            " ".join(tag["tag"] for tag in tags if tag["revision"] == str(revision["revision"])),
        ]
        for revision in await revisions(client, "fragments", subject, count)
    ]
    click.echo("\n".join(table(["REVISION", "SAVED", "BY", "TAGS"], rows)))


@fragments.command()
@click.argument("fragment")
@click.argument("tag")
@click.argument("revision")
@with_client
async def tag(client: ApiClient, fragment: str, tag: str, revision: str) -> None:
    """Set TAG to REVISION of FRAGMENT. Machines that are pinned to the tag use it immediately."""
    subject = (await find(client, fragment))["id"]
    await client.call(APP, "", "set_fragment_tag", fragment_id=subject, tag=tag, revision=revision)


@fragments.command()
@click.argument("fragment")
@click.argument("tag")
@with_client
async def untag(client: ApiClient, fragment: str, tag: str) -> None:
    """Remove TAG from FRAGMENT."""
    subject = (await find(client, fragment))["id"]
    await client.call(APP, "", "delete_fragment_tag", fragment_id=subject, tag=tag)


@fragments.command()
@click.argument("fragment")
@with_client
async def delete(client: ApiClient, fragment: str) -> None:
    """Delete FRAGMENT. It must not be in use."""
    await client.call(APP, "", "delete_fragment", id=(await find(client, fragment))["id"])


async def _all(client: ApiClient, *, public: bool = False) -> list[Mapping[str, Any]]:
    fragments_by_id: dict[str, Mapping[str, Any]] = {}
    for organization in await client.call(APP, "", "list_organizations"):
        page = await client.call(APP, "", "list_fragments", organization_id=organization["id"], show_public=public)
        fragments_by_id.update({fragment["id"]: fragment for fragment in page["fragments"]})
    return list(fragments_by_id.values())


async def find(client: ApiClient, name_or_id: str) -> Mapping[str, Any]:
    """Return a fragment of the caller's organizations by its name or id. ClickException."""
    available = await _all(client)
    matches = [fragment for fragment in available if is_called(fragment, name_or_id)]
    if len(matches) != 1:
        problem = (
            f"several fragments are called {name_or_id!r}: give the id" if matches else f"no fragment {name_or_id!r}"
        )
        names = ", ".join(sorted(fragment["name"] for fragment in available))
        raise click.ClickException(f"{problem} (there are {names or 'none'})")
    return matches[0]


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
        check_depth(document)
    except RecursionError:
        raise click.ClickException(str(nested_too_deeply())) from None
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:
        raise click.ClickException(f"the file is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise click.ClickException("the file is not a JSON object: write {...}")
    return document
