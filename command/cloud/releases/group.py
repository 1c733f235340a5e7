"""The group `machine cloud releases`: publishes signed releases and controls their rollouts."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from agent import PROGRAMS
from command.cloud.group import with_client, with_client_on_trio
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.times import with_texts
from command.groups import Commands
from command.output import json_option, print_json
from rpc.api import RELEASES
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from command.cloud.releases.repository import Repository
    from rpc.api import ApiClient
    from uplink.releases import Custom

ROOT: Final = "root"
TARGETS: Final = "targets"
STABLE: Final = "stable"
DEV: Final = "dev"
_FOLDER: Final = click.Path(path_type=Path, file_okay=False)
KEYS: Final = click.option(
    "--keys",
    "folders",
    type=_FOLDER,
    multiple=True,
    required=True,
    envvar="MACHINE_RELEASE_KEYS",
    metavar="FOLDER",
    help="Folder with keys; can be repeated. Also MACHINE_RELEASE_KEYS.",
)
MAYBE_KEYS: Final = click.option(
    "--keys",
    "folders",
    type=_FOLDER,
    multiple=True,
    envvar="MACHINE_RELEASE_KEYS",
    metavar="FOLDER",
    help="Folder with keys; can be repeated. Also MACHINE_RELEASE_KEYS. [default: the cloud signs]",
)
_YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")
_PROGRAM: Final = click.argument("program", type=click.Choice(PROGRAMS))
_VERSION: Final = click.argument("version")
_CHUNK: Final = 1 << 20


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine cloud releases init --keys ~/release-keys
  machine cloud releases upload machine-server-v1.2.0-aarch64 --keys ~/release-keys
  machine cloud releases rollout start machine-server 1.2.0 --percent 10 --stop-after 2
  machine cloud releases promote machine-server 1.2.0 --keys ~/release-keys""",
)
def releases() -> None:
    """Publish signed releases of machine-agent and machine-server, and roll them out.

    Signing keys are files on your computer and are never sent. If they have a passphrase, the commands ask for it, or
    read it from MACHINE_RELEASE_PASSPHRASE.
    """


# ---- the repository


@releases.command()
@KEYS
@click.option("--threshold", type=click.IntRange(1), default=1, show_default=True, help="Keys that must sign.")
@click.option("--passphrase", is_flag=True, help="Encrypt the keys with a passphrase, which the command asks for.")
@ORGANIZATION
@json_option
@with_client
async def init(
    client: ApiClient,
    /,
    folders: tuple[Path, ...],
    threshold: int,
    passphrase: bool,
    organization: str,
    as_json: bool,
) -> None:
    """Create the release repository of an organization, with new keys in each FOLDER.

    Each folder gets a key for root.json, which is needed only when keys change, and one for targets.json, which signs
    releases. Machines must trust the root.json that is written there too. It can be repeated after a failure.

    If the cloud kept the keys until now, it signs this root.json with its own root key, and deletes its keys: machines
    follow by themselves. The releases in the cloud are signed with the new keys: `withdraw` those you do not trust.
    """
    from command.cloud.releases import keys
    from command.cloud.releases.repository import Repository

    if threshold > len(folders):
        raise click.UsageError(f"{threshold} keys must sign: give at least {threshold} folders with --keys")
    owner = (await organization_of(client, organization))["id"]
    listed = await client.call(RELEASES, "", "list_releases", organization_id=owner)
    if listed["metadata"] and listed["keys_held_by"] != "cloud":
        raise MachineError(
            "this organization has a release repository", kind=ErrorKind.EXISTS, remedy="`machine cloud releases list`"
        )
    for folder in folders:
        if keys.has_keys(folder) or (folder / "root.json").exists():
            raise MachineError(
                f"{folder} has keys or a root.json",
                kind=ErrorKind.EXISTS,
                remedy="give a new folder; if `init` failed before, the keys in it were never used: remove it",
            )
    secret = _ask(new=True) if passphrase else ""
    signers = {role: [keys.create(folder, role, secret) for folder in folders] for role in (ROOT, TARGETS)}
    await Repository(client, owner, folders, _ask).create(signers[ROOT], signers[TARGETS], threshold)
    _say(
        as_json,
        {"organization": owner, "folders": [str(folder) for folder in folders]},
        f"the repository was created; its keys and root.json are in {', '.join(map(str, folders))}",
        "Keep a copy of each folder offline: without the keys nothing can be published, and they cannot be restored.",
        "Machines accept only signed releases once they have this root.json: see docs/howto/release-a-version.md.",
    )


@releases.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@KEYS
@click.option(
    "--channel", type=click.Choice([STABLE, DEV]), default=DEV, show_default=True, help="`stable` includes `dev`."
)
@click.option("--minimum", default="", metavar="VERSION", help="Lowest version from which an update is supported.")
@click.option("--program", type=click.Choice(PROGRAMS), help="For a file without a header.")
@click.option("--version", "version", default="", help="For a file without a header.")
@click.option("--platform", default="", metavar="NAME", help="For a file without a header, such as linux/aarch64.")
@ORGANIZATION
@json_option
@with_client_on_trio
async def upload(
    client: ApiClient,
    /,
    files: tuple[Path, ...],
    folders: tuple[Path, ...],
    channel: str,
    organization: str,
    as_json: bool,
    **identity: Any,
) -> None:
    """Upload release FILES, and sign them into a channel.

    A file that was uploaded before is not sent again. A version's content cannot change: use a new version number.
    """
    uploads = [_release(path, channel, **identity) for path in files]
    repository, owner = await _opened(client, organization, folders)
    _ = repository.signers  # asks for the passphrase before anything is sent
    await repository.verified()
    for release in uploads:
        await _send(client, owner, release, quiet=as_json)

    def add(entries: dict[str, Any]) -> dict[str, Any]:
        from command.cloud.releases.signing import entry_of

        for release in uploads:
            before = entries.get(release.custom.path)
            if before is not None and before.hashes != {"sha256": release.sha256}:
                raise MachineError(
                    f"{release.custom.path} was published with another content",
                    kind=ErrorKind.EXISTS,
                    remedy="give the build a new version, or withdraw that one first",
                )
            entries[release.custom.path] = entry_of(release.custom, release.sha256, release.path.stat().st_size)
        return entries

    await repository.change(add)
    for release in uploads:
        channels = " and ".join(release.custom.channels)
        _say(
            as_json,
            {"release": release.custom.path, "sha256": release.sha256, "channels": list(release.custom.channels)},
            f"{release.custom.path}  published in {channels}",
        )


@releases.command()
@_PROGRAM
@_VERSION
@MAYBE_KEYS
@ORGANIZATION
@json_option
@with_client
async def promote(
    client: ApiClient, program: str, version: str, folders: tuple[Path, ...], organization: str, as_json: bool
) -> None:
    """Add VERSION of PROGRAM to the channel `stable`, on all its platforms.

    All machines that follow `stable` get it, or those that its rollout selects, if there is one.
    """
    if folders:
        repository, _ = await _opened(client, organization, folders)

        def change(entries: dict[str, Any]) -> dict[str, Any]:
            for path in _paths(entries, program, version):
                entries[path] = _in_channels(entries[path], (STABLE, DEV))
            return entries

        changed = await repository.change(change)
    else:
        await _set_channels(client, organization, program, version, (STABLE, DEV))
        changed = True
    _say(
        as_json,
        {"program": program, "version": version, "changed": changed},
        f"{program} {version} is in the channel stable" + ("" if changed else " already"),
    )


@releases.command()
@_PROGRAM
@_VERSION
@MAYBE_KEYS
@click.option("--platform", default="", metavar="NAME", help="Only this platform, such as linux/aarch64.")
@_YES
@ORGANIZATION
@json_option
@with_client
async def withdraw(
    client: ApiClient,
    /,
    program: str,
    version: str,
    folders: tuple[Path, ...],
    platform: str,
    yes: bool,
    organization: str,
    as_json: bool,
) -> None:
    """Withdraw VERSION of PROGRAM. Machines that run it go back to the newest version that is still signed."""
    if platform and not folders:
        raise click.UsageError("--platform needs --keys: the cloud withdraws a version for all platforms")
    if not yes:
        click.confirm(f"Withdraw {program} {version} from all machines?", abort=True)
    if not folders:
        await _set_channels(client, organization, program, version, ())
        _say(as_json, {"program": program, "version": version}, f"{program} {version} was withdrawn")
        return
    repository, _ = await _opened(client, organization, folders)

    def change(entries: dict[str, Any]) -> dict[str, Any]:
        for path in _paths(entries, program, version, platform):
            del entries[path]
        return entries

    await repository.change(change)
    _say(as_json, {"program": program, "version": version}, f"{program} {version} was withdrawn")


@releases.command()
@MAYBE_KEYS
@click.option("--online-keys", "online", is_flag=True, help="Replace the cloud's keys for snapshot and timestamp.")
@click.option("--targets-keys", "targets", is_flag=True, help="Replace the keys that sign releases.")
@click.option("--root-keys", "root", is_flag=True, help="Replace the keys that sign root.json.")
@click.option("--into", type=_FOLDER, multiple=True, metavar="FOLDER", help="Folder for a new key; default: --keys.")
@click.option(
    "--passphrase", is_flag=True, help="Ask for a passphrase of the new keys. [default: that of the keys in --keys]"
)
@ORGANIZATION
@json_option
@with_client
async def rotate(
    client: ApiClient,
    /,
    folders: tuple[Path, ...],
    into: tuple[Path, ...],
    passphrase: bool,
    organization: str,
    as_json: bool,
    **parts: bool,
) -> None:
    """Replace keys, and renew root.json and targets.json. Without an option only the files are renewed.

    Needs the keys for root.json. A replaced key is invalid at once; delete its file. With --online-keys, machines also
    accept the older metadata of a cloud that was restored from a backup. Without --keys, a cloud that keeps the keys
    itself replaces all of them.
    """
    from command.cloud.releases import keys
    from command.cloud.releases.repository import Repository

    secret = ""

    def ask() -> str:
        nonlocal secret
        secret = _ask()
        return secret

    owner = (await organization_of(client, organization))["id"]
    if not folders:
        if into or passphrase or any(parts.values()):
            raise click.UsageError("these options need --keys: without it, the cloud replaces all keys that it keeps")
        await client.call(RELEASES, "", "rotate_release_keys", organization_id=owner)
        _say(as_json, {"replaced": ["the cloud"]}, "all keys that the cloud keeps were replaced")
        return
    places = into or folders
    before = Repository(client, owner, folders, ask)
    _ = before.signers
    await before.verified(accept_older=parts["online"])
    if passphrase:
        secret = _ask(new=True)
    roles = [role for role in (ROOT, TARGETS) if parts[role]]
    replaced = {role: [keys.create(folder, role, secret) for folder in places] for role in roles}
    repository = Repository(client, owner, tuple(dict.fromkeys((*folders, *places))), lambda: secret or _ask())
    repository.use(before.signers)
    await repository.renew(replaced=replaced, online=parts["online"], accept_older=parts["online"])
    what = [*roles, *(["the cloud"] if parts["online"] else [])]
    text = f"new keys of {', '.join(what)} are in force" if what else "root.json and targets.json were renewed"
    _say(as_json, {"replaced": what}, text)


# ---- showing


@releases.command("ls")
@ORGANIZATION
@json_option
@with_client
async def list_command(client: ApiClient, organization: str, as_json: bool) -> None:
    """List versions with channels, platforms and rollouts, and when the metadata expires."""
    from schema import SemanticVersion
    from support.text.terminal import table

    owner = (await organization_of(client, organization))["id"]
    reply = with_texts(await client.call(RELEASES, "", "list_releases", organization_id=owner))
    if as_json:
        print_json(reply)
        return
    if not reply["metadata"]:
        click.echo("there is no release repository: create one with `machine cloud releases init`")
        return
    rollouts = {(entry["program"], entry["version"]): _summary(entry) for entry in reply["rollouts"]}
    versions: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for target in reply["targets"]:
        versions.setdefault((target["program"], target["version"]), []).append(target)
    newest = sorted(versions.items(), key=lambda item: SemanticVersion.parse(item[0][1]), reverse=True)
    rows = [
        [*key, _joined(target["channels"] for target in group), _joined([target["platform"]] for target in group),
         rollouts.get(key, "")]
        for key, group in sorted(newest, key=lambda item: item[0][0])
    ]  # fmt: skip
    if rows:
        click.echo("\n".join(table(["PROGRAM", "VERSION", "CHANNELS", "PLATFORMS", "ROLLOUT"], rows)))
    else:
        click.echo("no versions: publish one with `machine cloud releases upload FILE`")
    click.echo("")
    facts = [
        [entry["role"], str(entry["version"]), entry["expires"][:16].replace("T", " ")] for entry in reply["metadata"]
    ]
    click.echo("\n".join(table(["METADATA", "VERSION", "EXPIRES (UTC)"], facts)))


@releases.command()
@_PROGRAM
@_VERSION
@ORGANIZATION
@json_option
@with_client
async def show(client: ApiClient, program: str, version: str, organization: str, as_json: bool) -> None:
    """Show the files of VERSION of PROGRAM, and its rollout with the machines."""
    from command.cloud.releases.rollouts import status_at, status_of
    from support.text.terminal import table

    owner = (await organization_of(client, organization))["id"]
    reply = await client.call(RELEASES, "", "list_releases", organization_id=owner)
    files = [entry for entry in reply["targets"] if (entry["program"], entry["version"]) == (program, version)]
    started = any((entry["program"], entry["version"]) == (program, version) for entry in reply["rollouts"])
    if not files and not started:
        raise _missing(program, version)
    status = await status_at(client, owner, program, version) if started else None
    if as_json:
        print_json({"files": files, "rollout": status})
        return
    rows = [
        [file["platform"], ", ".join(file["channels"]), f"{file['size'] / 1024**2:.1f} MiB", file["sha256"]]
        for file in files
    ]
    click.echo("\n".join(table(["PLATFORM", "CHANNELS", "SIZE", "SHA-256"], rows)))
    if status is not None:
        click.echo("\n" + status_of(status))


# ---- shared


class _Release(NamedTuple):
    path: Path
    custom: Custom
    sha256: str


def _ask(*, new: bool = False) -> str:
    """Return the passphrase of the keys."""
    from command.cloud.releases.keys import PASSPHRASE

    if PASSPHRASE in os.environ:
        return os.environ[PASSPHRASE]
    if not sys.stdin.isatty():
        raise click.UsageError(f"the keys have a passphrase: set {PASSPHRASE}, or use a terminal")
    return str(click.prompt("Passphrase of the release keys", hide_input=True, confirmation_prompt=new, err=True))


async def _set_channels(
    client: ApiClient, organization: str, program: str, version: str, channels: Sequence[str]
) -> None:
    """Have the cloud sign a version into channels, or withdraw it. Raises MachineError."""
    owner = (await organization_of(client, organization))["id"]
    where = {"organization_id": owner, "program": program, "version": version}
    await client.call(RELEASES, "", "set_release_channels", channels=list(channels), **where)


async def _opened(client: ApiClient, organization: str, folders: Sequence[Path]) -> tuple[Repository, str]:
    from command.cloud.releases.repository import Repository

    owner = (await organization_of(client, organization))["id"]
    return Repository(client, owner, folders, _ask), owner


def _release(path: Path, channel: str, program: str | None, version: str, platform: str, minimum: str) -> _Release:
    """Return what a file is, by its header or by the options. Raises MachineError."""
    from uplink.releases import MAX_FILE, MAX_HEADER, Custom, read_header

    with path.open("rb") as file:
        beginning = file.read(MAX_HEADER)
        file.seek(0)
        digest, size = hashlib.sha256(), 0
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    if not 0 < size <= MAX_FILE:
        raise MachineError(
            f"{path} has {size:,} bytes; a release has 1 to {MAX_FILE:,}",
            kind=ErrorKind.INVALID,
            remedy="build it again",
        )
    options = (program or "", version, platform)
    if all(options):
        named = options
    else:
        try:
            header = read_header(beginning)
        except MachineError as error:
            raise MachineError(f"{path}: {error.message}", kind=error.kind, remedy=error.remedy) from None
        named = (header.program, header.version, header.platform)
        if any(option not in ("", value) for option, value in zip(options, named, strict=True)):
            raise MachineError(
                f"{path} is {' '.join(named)} by its header", kind=ErrorKind.INVALID, remedy="leave out the options"
            )
    channels = (STABLE, DEV) if channel == STABLE else (DEV,)
    try:
        return _Release(path, Custom(*named, channels, minimum), digest.hexdigest())
    except ValueError as error:
        raise MachineError(f"{path}: {error}", kind=ErrorKind.INVALID) from None


async def _send(client: ApiClient, owner: str, release: _Release, *, quiet: bool) -> None:
    """Upload a file unless the cloud has it."""
    from urllib.parse import quote

    from command.cloud.http import send_file
    from command.cloud.registry.upload import pieces
    from uplink.releases import RELEASE_FILES_PATH

    if await client.call(RELEASES, "", "has_release_file", organization_id=owner, sha256=release.sha256):
        return
    size = release.path.stat().st_size
    with release.path.open("rb") as file:
        path = f"{RELEASE_FILES_PATH}{quote(owner, safe='')}/{release.sha256}"
        await send_file(path, pieces(file, size, quiet=quiet), size)


def _paths(entries: Mapping[str, Any], program: str, version: str, platform: str = "") -> list[str]:
    """Return the names of the targets of a version. NOT_FOUND if there is none."""
    prefix = f"{program}/{version}/"
    paths = [
        path
        for path in entries
        if path.startswith(prefix) and platform in ("", path.removeprefix(prefix).replace("-", "/", 1))
    ]
    if not paths:
        raise _missing(program, f"{version} for {platform}" if platform else version)
    return paths


def _missing(program: str, version: str) -> MachineError:
    return MachineError(
        f"there is no {program} {version}",
        kind=ErrorKind.NOT_FOUND,
        remedy="`machine cloud releases list` shows the versions",
    )


def _in_channels(entry: Any, channels: Sequence[str]) -> Any:
    """Return an entry in these channels too."""
    from tuf.api.metadata import TargetFile

    together = sorted({*entry.custom["channels"], *channels}, reverse=True)
    fields = {"custom": {**entry.custom, "channels": together}}
    return TargetFile(entry.length, dict(entry.hashes), entry.path, fields)


def _joined(texts: Any) -> str:
    return ", ".join(sorted({text for group in texts for text in group}))


def _summary(rollout: Mapping[str, Any]) -> str:
    return f"{rollout['state']}, {rollout['percent']:g} %, {rollout['rolled_back']} rolled back"


def _say(as_json: bool, facts: Mapping[str, Any], *lines: str) -> None:

    if as_json:
        print_json(facts)
    else:
        click.echo("\n".join(lines))


releases.add_later(
    {
        "import": "command.cloud.releases.importing:import_command",
        "rollout": "command.cloud.releases.rollouts:rollout",
    }
)
