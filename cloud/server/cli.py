"""Command line of machine-cloud."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from cloud.blobs.s3_location import ADDRESSING
from cloud.commands.ca_command import ca_command
from cloud.commands.doctor_command import doctor_command
from cloud.commands.files_command import BUCKET, files_command, files_location
from cloud.commands.move_command import move_command
from cloud.commands.options import DEFAULT_ADDRESS, EXIT_FAILED, Options, is_postgres
from cloud.commands.organization_command import organization_command
from cloud.domain.triggering.ways import ways
from rpc.access.forwarded import Proxies, network
from schema.errors import MachineError
from support.early_stop import hold, release

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_EXISTING: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.group("machine-cloud", context_settings=CONTEXT, invoke_without_command=True)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("machine-cloud"),
    show_default=True,
    help="Folder of the database and everything else; made if it is missing.",
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
    help="Captured files and packages: a folder, or a bucket of an S3-compatible store; replicas share it.  "
    "[default: files in --data]",
)
@click.option("--s3-endpoint", default="", metavar="URL", help="That store.  [default: Amazon's of the region]")
@click.option("--s3-region", default="", help="The bucket's region.  [default: AWS_REGION, else us-east-1]")
@click.option(
    "--s3-credentials",
    type=_EXISTING,
    help="File with its access key, as ~/.aws/credentials.  "
    "[default: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN]",
)
@click.option(
    "--s3-addressing",
    type=click.Choice(ADDRESSING),
    default="auto",
    show_default=True,
    help="Where the bucket's name stands: in the path, or in the host's name; auto is the host's name at Amazon only.",
)
@click.option(
    "--listen", default=DEFAULT_ADDRESS, show_default=True, metavar="HOST:PORT", help="Where clients and machines call."
)
@click.option("--organization", default="Home", show_default=True, help="Name of the one that the first start makes.")
@click.option("--tls", is_flag=True, help="Serve TLS with a certificate of this cloud's own authority: see `ca`.")
@click.option(
    "--tls-name",
    multiple=True,
    metavar="NAME|ADDRESS",
    help="With --tls, a name for which it is too, besides those of this computer; several times for several.",
)
@click.option("--tls-cert", type=_EXISTING, help="Serve TLS with this certificate (PEM); renewed files are taken over.")
@click.option("--tls-key", type=_EXISTING, help="Its private key (PEM).")
@click.option("--url", default="", metavar="URL", help="Where clients reach it, for links; else where it listens.")
@click.option(
    "--proxy",
    multiple=True,
    metavar="ADDRESS|NETWORK",
    help="A reverse proxy that is believed who its clients are (X-Forwarded-For); several times for several.",
)
@click.option(
    "--max-package",
    type=click.IntRange(1),
    default=512,
    show_default=True,
    metavar="MIB",
    help="The largest archive that the registry takes.",
)
@click.option(
    "--max-file",
    type=click.IntRange(1),
    default=4096,
    show_default=True,
    metavar="MIB",
    help="The largest captured file that it takes, in pieces.",
)
@click.option(
    "--max-message",
    type=click.IntRange(4, 1024),
    default=64,
    show_default=True,
    metavar="MIB",
    help="The largest message: official SDKs upload a whole file in one.",
)
@click.option("--smtp", default="", metavar="HOST:PORT", help="The server that takes emails of triggers.")
@click.option("--smtp-from", default="", metavar="ADDRESS", help="Who sends them; with --smtp.")
@click.option(
    "--smtp-security",
    type=click.Choice(("starttls", "tls", "none")),
    default="starttls",
    show_default=True,
    help="How that server is spoken to. User and password: MACHINE_CLOUD_SMTP_USER, MACHINE_CLOUD_SMTP_PASSWORD.",
)
@click.option("--smtp-ca", default="", metavar="FILE", help="Certificates (PEM) to trust there, not the system's.")
@click.option(
    "--webhook-allow",
    multiple=True,
    metavar="HOST|NETWORK",
    help="A private host or network (CIDR) that webhooks may reach; several times for several.",
)
@click.pass_context
def command(context: click.Context, /, data: Path, database: str, files: str, **given: Any) -> None:
    """Serve the cloud application: configurations with history, keys and logs of machines.

    The first start creates an organization and prints its owner's key once.
    """
    if database and not is_postgres(database):
        raise click.UsageError("--database is postgresql://...; without it the database is a file in --data")
    bucket = {name: given.pop(f"s3_{name}") for name in ("endpoint", "region", "credentials", "addressing")}
    files_at = files_location(files, **bucket) if files else None
    context.obj = Options(data=data, postgres=database, files_at=files_at)
    context.meta[BUCKET] = bucket
    if context.invoked_subcommand is not None:
        release()
        return
    if (given["tls_cert"] is None) != (given["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if given["tls"] and given["tls_cert"] is not None:
        raise click.UsageError("--tls makes a certificate, --tls-cert brings one: leave one of them out")
    if given["tls"] and given["url"].startswith("http://"):
        raise click.UsageError(f"with --tls clients reach it by https: --url https{given['url'][4:]}")
    if given["tls_name"] and not given["tls"]:
        raise click.UsageError("--tls-name goes with --tls")
    if given["tls_name"]:
        from cloud.domain.certificates.issue import alternative

        try:
            for name in given["tls_name"]:
                alternative(name)
        except ValueError as error:
            raise click.UsageError(f"--tls-name: {error}") from None
    from cloud.server.app import main as serve

    try:
        found = ways(
            smtp=given["smtp"],
            sender=given["smtp_from"],
            security=given["smtp_security"],
            ca_file=given["smtp_ca"],
            environment=os.environ,
            allow=given["webhook_allow"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        proxies = Proxies(tuple(network(text) for text in given["proxy"]))
    except ValueError as error:
        raise click.UsageError(f"--proxy: {error}") from None
    options = Options(
        data=data,
        postgres=database,
        files_at=files_at,
        address=given["listen"],
        organization=given["organization"],
        tls_cert=given["tls_cert"],
        tls_key=given["tls_key"],
        tls=given["tls"],
        tls_names=given["tls_name"],
        url=given["url"].rstrip("/"),
        proxies=proxies,
        ways=found,
        package_mib=given["max_package"],
        file_mib=given["max_file"],
        message_mib=given["max_message"],
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
    kept = f"{count} files" if isinstance(options.files, Path) else f"no files: these are in {options.files}"
    click.echo(f"{file}: {size} bytes, the database and {kept}. It holds machines' secrets: keep it safe.")


@command.command("restore")
@click.argument("file", type=_EXISTING)
@click.pass_obj
def restore_command(options: Options, file: Path) -> None:
    """Replace the database and files with the backup FILE, while the cloud is not running."""
    from cloud.commands.backup import restore

    _own_database(options, "pg_restore --clean --if-exists --dbname=URL FILE")
    try:
        aside = restore(file, options.database, options.files)
    except MachineError as error:
        _fail(error)
    kept = f"; what was there is {' and '.join(map(str, aside))}" if aside else ""
    restored = f"{options.database} and {options.files} are" if isinstance(options.files, Path) else "the database is"
    click.echo(f"{restored} as in {file}{kept}")


command.add_command(doctor_command)
command.add_command(files_command)
command.add_command(move_command)
command.add_command(organization_command)
command.add_command(ca_command)


def _own_database(options: Options, instead: str) -> None:
    """Reject PostgreSQL, whose own backup programs should be used: UsageError that names one."""
    if options.postgres:
        raise click.UsageError(
            f"with PostgreSQL, use its own program: {instead}; and copy the files ({options.files}) after"
        )


def _fail(error: MachineError) -> NoReturn:
    click.echo(f"machine-cloud: {error}", err=True)
    sys.exit(EXIT_FAILED)


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
    hold()
    command.main(prog_name="machine-cloud")


if __name__ == "__main__":
    main()
