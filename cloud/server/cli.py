"""Command line of machine-cloud."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import click

from cloud.blobs.s3_location import ADDRESSING
from cloud.commands.ca_command import ca_command
from cloud.commands.doctor_command import doctor_command
from cloud.commands.files_command import BUCKET, files_command, files_location
from cloud.commands.move_command import move_command
from cloud.commands.options import DEFAULT_ADDRESS, EXIT_FAILED, Options, RayOptions, is_postgres
from cloud.commands.organization_command import organization_command
from cloud.commands.simulate_command import simulate_command
from cloud.domain.machines.ice import ice_servers
from cloud.domain.triggering.ways import ways
from rpc.access import Proxies, parse_network
from schema import MachineError
from support import AbsolutePath, ProgramPath, hold_signals, lean_imports, release_signals
from training.weights import BACKBONE

SEALED_AFTER: Final = timedelta(hours=24)
MOST_HOURS: Final = 100 * 366 * 24
CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_FILE: Final = AbsolutePath(dir_okay=False)
_EXISTING: Final = AbsolutePath(dir_okay=False, exists=True)
_FOLDER: Final = AbsolutePath(file_okay=False)


@click.group("machine-cloud", context_settings=CONTEXT, invoke_without_command=True)
@click.option(
    "--data",
    type=_FOLDER,
    default=Path("machine-cloud"),
    show_default=True,
    help="Folder of the database and all other data; created if it is missing.",
)
@click.option(
    "--database",
    default="",
    envvar="MACHINE_CLOUD_DATABASE",
    metavar="URL",
    help="postgresql://USER:PASSWORD@HOST/NAME instead of a file in --data; for several replicas.  "
    "[env var: MACHINE_CLOUD_DATABASE]",
)
@click.option(
    "--files",
    default="",
    metavar="FOLDER|s3://BUCKET/PREFIX",
    help="Captured files and packages: a folder, or a bucket of an S3-compatible store; all replicas use the same.  "
    "[default: files in --data]",
)
@click.option(
    "--s3-endpoint",
    default="",
    metavar="URL",
    help="URL of the store.  [default: Amazon's endpoint of the region]",
)
@click.option("--s3-region", default="", help="The bucket's region.  [default: AWS_REGION, else us-east-1]")
@click.option(
    "--s3-credentials",
    type=_EXISTING,
    help="File with the access key of the store, in the format of ~/.aws/credentials.  "
    "[default: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN]",
)
@click.option(
    "--s3-addressing",
    type=click.Choice(ADDRESSING),
    default="auto",
    show_default=True,
    help="Where URLs contain the bucket's name: in the path or the host name; auto: in the host name at Amazon only.",
)
@click.option(
    "--listen",
    default=DEFAULT_ADDRESS,
    show_default=True,
    metavar="HOST:PORT",
    help="Address for clients and machines.",
)
@click.option(
    "--organization", default="Home", show_default=True, help="Name of the organization that the first start creates."
)
@click.option("--tls", is_flag=True, help="Serve TLS with a certificate of this cloud's own authority: see `ca`.")
@click.option(
    "--tls-name",
    multiple=True,
    metavar="NAME|ADDRESS",
    help="With --tls, a name or address for the certificate, in addition to those of this computer; can be repeated.",
)
@click.option(
    "--tls-cert", type=_EXISTING, help="Serve TLS with this certificate (PEM); a renewed file is loaded automatically."
)
@click.option("--tls-key", type=_EXISTING, help="Private key of the certificate (PEM).")
@click.option(
    "--url", default="", metavar="URL", help="Base URL of links for clients.  [default: the address of --listen]"
)
@click.option(
    "--machine-domain",
    default="",
    metavar="DOMAIN",
    help="Give each machine a host name in DOMAIN, so that clients reach it through this cloud. The wildcard DNS name "
    "*.DOMAIN must point to this cloud, and --tls-cert must be valid for it.",
)
@click.option(
    "--ice-server",
    multiple=True,
    metavar="URL",
    help="A STUN or TURN server for connections to machines, such as turn:HOST:3478; can be repeated. The secret of "
    "TURN servers: MACHINE_CLOUD_TURN_SECRET.",
)
@click.option(
    "--replica-address",
    default="",
    metavar="URL",
    help="URL at which machines reach this replica and no other; with several replicas, calls to machines need it.",
)
@click.option(
    "--proxy",
    multiple=True,
    metavar="ADDRESS|NETWORK",
    help="A reverse proxy whose X-Forwarded-For header is trusted; can be repeated.",
)
@click.option(
    "--max-package",
    type=click.IntRange(1),
    default=512,
    show_default=True,
    metavar="MIB",
    help="Maximum size of an archive in the registry.",
)
@click.option(
    "--max-file",
    type=click.IntRange(1),
    default=4096,
    show_default=True,
    metavar="MIB",
    help="Maximum size of a captured file, which is uploaded in pieces.",
)
@click.option(
    "--seal-after",
    default="",
    metavar="HOURS|never",
    help="Move readings from the database to Parquet files in --files, from so long after their arrival on.  "
    "[default: 24; never with --database, or without pyarrow]",
)
@click.option(
    "--max-message",
    type=click.IntRange(4, 1024),
    default=64,
    show_default=True,
    metavar="MIB",
    help="Maximum size of a message: official SDKs upload a whole file in one message.",
)
@click.option("--smtp", default="", metavar="HOST:PORT", help="Mail server for emails of triggers and invitations.")
@click.option(
    "--training",
    default="local",
    show_default=True,
    metavar="WHERE",
    help="Run training jobs on this computer (local), or on a Ray cluster: ray://HOST[:PORT], the address of its "
    "dashboard, or ray+https://HOST. A cluster needs --ray-token and --training-folder.",
)
@click.option(
    "--training-folder",
    type=_FOLDER,
    default=None,
    metavar="DIR",
    help="Folder for running jobs; a cluster needs one that all its nodes see under the same path.  "
    "[default: in --data]",
)
@click.option(
    "--ray-token", type=_EXISTING, default=None, metavar="FILE", help="Token for the Ray cluster (RAY_AUTH_MODE=token)."
)
@click.option(
    "--ray-python",
    default="python3",
    show_default=True,
    metavar="PROGRAM",
    help="Interpreter on the nodes, with onnxruntime, numpy, pillow, msgspec and protobuf.",
)
@click.option(
    "--ray-resources",
    default="CPU=1",
    show_default=True,
    metavar="LIST",
    help="What each job needs on one node, such as CPU=2,GPU=1,memory=8192,name=1; memory in MiB.",
)
@click.option(
    "--ray-scripts",
    is_flag=True,
    help="Run training scripts of the registry on the cluster too. Its nodes do not isolate them: every organization "
    "can then run programs there.",
)
@click.option(
    "--training-backbone",
    type=_EXISTING,
    default=BACKBONE,
    metavar="FILE",
    help="Train with these pretrained weights, an ONNX file, instead of those that are part of machine-cloud.",
)
@click.option(
    "--training-python",
    type=ProgramPath(),
    default="",
    metavar="PROGRAM",
    help="Run training scripts of the registry with this Python interpreter, isolated from this computer.",
)
@click.option(
    "--training-index",
    multiple=True,
    metavar="URL",
    help="Install requirements of training scripts from this package index. Can be repeated: the first one that has "
    "a package provides it. Every organization can install its packages.  [default: install nothing]",
)
@click.option(
    "--training-netrc",
    type=_EXISTING,
    default=None,
    metavar="FILE",
    help="User and password of these indexes, in the format of .netrc.",
)
@click.option(
    "--training-environments",
    type=click.IntRange(100, 10_000_000),
    default=20_480,
    show_default=True,
    metavar="MIB",
    help="Size of the installed requirements that are kept for further jobs; those used longest ago are removed.",
)
@click.option(
    "--training-jobs",
    type=click.IntRange(0, 64),
    default=1,
    show_default=True,
    help="Number of training jobs at once; 0 trains nothing here. Training needs the extra `ml`.",
)
@click.option(
    "--releases",
    type=_FOLDER,
    default=None,
    metavar="DIR",
    help="Folder with release files of this version, which owners import.  [default: releases in --data]",
)
@click.option(
    "--smtp-from", default="", metavar="ADDRESS", help="Sender address of these emails; required with --smtp."
)
@click.option(
    "--smtp-security",
    type=click.Choice(("starttls", "tls", "none")),
    default="starttls",
    show_default=True,
    help="Encryption of the connection to the mail server. User and password: MACHINE_CLOUD_SMTP_USER, "
    "MACHINE_CLOUD_SMTP_PASSWORD.",
)
@click.option(
    "--smtp-ca",
    type=_EXISTING,
    default=None,
    metavar="FILE",
    help="Certificates (PEM) to trust for the mail server instead of the system's.",
)
@click.option(
    "--webhook-allow",
    multiple=True,
    metavar="HOST|NETWORK",
    help="A private host or network (CIDR) that webhooks may reach; can be repeated.",
)
@click.pass_context
def command(context: click.Context, /, data: Path, database: str, files: str, **settings: Any) -> None:
    """Serve the cloud application: configurations with history, keys and logs of machines.

    The first start creates an organization and prints its owner's key once.
    """
    if database and not is_postgres(database):
        raise click.UsageError("--database must be a URL postgresql://...; leave it out for a database file in --data")
    bucket = {name: settings.pop(f"s3_{name}") for name in ("endpoint", "region", "credentials", "addressing")}
    files_at = files_location(files, **bucket) if files else None
    context.obj = Options(data=data, postgres=database, files_at=files_at)
    context.meta[BUCKET] = bucket
    if context.invoked_subcommand is not None:
        release_signals()
        return
    if (settings["tls_cert"] is None) != (settings["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key must be used together")
    if settings["tls"] and settings["tls_cert"] is not None:
        raise click.UsageError("--tls and --tls-cert exclude each other: leave out one of them")
    if settings["tls"] and settings["url"].startswith("http://"):
        raise click.UsageError(f"with --tls, the URL must begin with https: use --url https{settings['url'][4:]}")
    if settings["tls_name"] and not settings["tls"]:
        raise click.UsageError("--tls-name requires --tls")
    if settings["tls_name"]:
        from cloud.domain.certificates.issue import alternative

        try:
            for name in settings["tls_name"]:
                alternative(name)
        except ValueError as error:
            raise click.UsageError(f"--tls-name: {error}") from None
    domain = settings["machine_domain"].strip(".").lower()
    if settings["machine_domain"]:
        from cloud.domain.certificates.issue import is_dns_name

        if not is_dns_name(domain):
            raise click.UsageError(f"--machine-domain: {settings['machine_domain']!r} is not a DNS name")
    with lean_imports():
        from cloud.server.app import main as serve

    try:
        delivery = ways(
            smtp=settings["smtp"],
            sender=settings["smtp_from"],
            security=settings["smtp_security"],
            ca_file=str(settings["smtp_ca"] or ""),
            environment=os.environ,
            allow=settings["webhook_allow"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        ice = ice_servers(settings["ice_server"], os.environ)
    except ValueError as error:
        raise click.UsageError(f"--ice-server: {error}") from None
    try:
        proxies = Proxies(tuple(parse_network(text) for text in settings["proxy"]))
    except ValueError as error:
        raise click.UsageError(f"--proxy: {error}") from None
    options = Options(
        data=data,
        postgres=database,
        files_at=files_at,
        address=settings["listen"],
        organization=settings["organization"],
        tls_cert=settings["tls_cert"],
        tls_key=settings["tls_key"],
        tls=settings["tls"],
        tls_names=settings["tls_name"],
        url=settings["url"].rstrip("/"),
        replica_address=_base_url(settings["replica_address"], "--replica-address"),
        machine_domain=domain,
        ice=ice,
        proxies=proxies,
        ways=delivery,
        package_mib=settings["max_package"],
        file_mib=settings["max_file"],
        message_mib=settings["max_message"],
        seal_after=_seal_after(settings["seal_after"], shared=bool(database)),
        ray=_ray(settings),
        training_folder=settings["training_folder"],
        training_backbone=settings["training_backbone"],
        training_python=settings["training_python"],
        training_jobs=settings["training_jobs"],
        training_indexes=_indexes(settings["training_index"], settings["training_python"]),
        training_netrc=settings["training_netrc"],
        training_environments_mib=settings["training_environments"],
        releases=settings["releases"],
        ready_fd=_ready_fd(),
    )
    sys.exit(serve(options))


@command.command("backup")
@click.argument("file", type=_FILE)
@click.pass_obj
def backup_command(options: Options, file: Path) -> None:
    """Copy the database and files to a new FILE (tar), even while the cloud is running."""
    from cloud.commands.backup import backup

    _own_database(options, "pg_dump --format=custom --file=FILE URL")
    try:
        size, count = backup(options.database, options.files, file)
    except MachineError as error:
        _fail(error)
    content = f"{count} files" if isinstance(options.files, Path) else f"no files, which are in {options.files}"
    click.echo(f"{file}: {size} bytes, the database and {content}. It contains secrets of machines: keep it safe.")


@command.command("restore")
@click.argument("file", type=_EXISTING)
@click.pass_obj
def restore_command(options: Options, file: Path) -> None:
    """Replace the database and files with the backup FILE, while the cloud is not running."""
    from cloud.commands.backup import restore

    _own_database(options, "pg_restore --clean --if-exists --dbname=URL FILE")
    try:
        renamed = restore(file, options.database, options.files)
    except MachineError as error:
        _fail(error)
    restored = f"{options.database} and {options.files}" if isinstance(options.files, Path) else "the database"
    previous = f"; the previous data is now in {' and '.join(map(str, renamed))}" if renamed else ""
    click.echo(f"restored {restored} from {file}{previous}")


command.add_command(doctor_command)
command.add_command(files_command)
command.add_command(move_command)
command.add_command(organization_command)
command.add_command(simulate_command)
command.add_command(ca_command)


def _own_database(options: Options, instead: str) -> None:
    """Reject PostgreSQL, whose own backup programs should be used: UsageError that names one."""
    if options.postgres:
        raise click.UsageError(
            f"with PostgreSQL, use its own program: {instead}; then copy the files in {options.files}"
        )


def _fail(error: MachineError) -> NoReturn:
    click.echo(f"machine-cloud: {error}", err=True)
    sys.exit(EXIT_FAILED)


def _seal_after(hours: str, *, shared: bool) -> timedelta | None:
    """Return when readings are sealed. Replicas of a shared database must all be able to read files: no default."""
    installed = find_spec("pyarrow") is not None
    if hours == "never" or (not hours and (shared or not installed)):
        return None
    if not installed:
        raise click.UsageError("--seal-after needs pyarrow, which is not installed: install the extra `data`")
    if hours and not (hours.isascii() and hours.isdigit() and 1 <= int(hours) <= MOST_HOURS):
        raise click.UsageError(
            f"--seal-after: {hours[:40]!r} is neither a number of hours (1 to {MOST_HOURS}) nor never"
        )
    return timedelta(hours=int(hours)) if hours else SEALED_AFTER


def _ray(settings: Mapping[str, Any]) -> RayOptions | None:
    """Return the options of a cluster; None for training on this computer."""
    address = settings["training"]
    if address == "local":
        return None
    from training.engine import parse_address, parse_placement

    try:
        parse_address(address)
    except ValueError as error:
        raise click.UsageError(f"--training: {error}") from None
    try:
        parse_placement(settings["ray_resources"])
    except ValueError as error:
        raise click.UsageError(f"--ray-resources: {error}") from None
    for option in ("ray_token", "training_folder"):
        if settings[option] is None:
            raise click.UsageError(f"--training {address} needs --{option.replace('_', '-')}")
    token = settings["ray_token"].read_text(errors="replace").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise click.UsageError(f"--ray-token: {settings['ray_token']} does not contain a token")
    return RayOptions(
        address=address,
        token=token,
        python=settings["ray_python"],
        resources=settings["ray_resources"],
        scripts=settings["ray_scripts"],
    )


def _indexes(urls: tuple[str, ...], python: str) -> tuple[str, ...]:
    """Return URLs of package indexes. Their errors do not repeat a URL, which may contain a password."""
    if urls and not python:
        raise click.UsageError("--training-index requires --training-python")
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http", "file") or not (parts.netloc or parts.scheme == "file"):
            raise click.UsageError("--training-index must be a URL https://..., http://... or file:///...")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise click.UsageError(
                "--training-index must not contain a user, a password or a query: use --training-netrc FILE"
            )
    return urls


def _base_url(text: str, option: str) -> str:
    """Return a URL without path, in the form in which machines use it. UsageError if it is not one."""
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/")):
        raise click.UsageError(f"{option}: {text!r} is not a URL such as https://replica-1.cloud.example:8090")
    return text.rstrip("/")


def _ready_fd() -> int | None:
    """Return the descriptor that the parent process provided to be notified when the port is open."""
    text = os.environ.pop("MACHINE_READY_FD", "")
    if not text:
        return None
    try:
        os.fstat(int(text))
    except (ValueError, OSError):
        raise click.UsageError(f"MACHINE_READY_FD={text!r} is not an open descriptor") from None
    os.set_inheritable(int(text), False)
    return int(text)


def main() -> None:
    """Run machine-cloud and exit with an exit code of cloud.commands.options."""
    hold_signals()
    command.main(prog_name="machine-cloud")


if __name__ == "__main__":
    main()
