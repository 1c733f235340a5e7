"""The command line of machine-cloud."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import click

from cloud.options import DEFAULT_ADDRESS, Options

HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.command("machine-cloud", context_settings=HELP)
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("machine-cloud"), show_default=True,
    help="Folder for the database and everything else; made if it is missing.",
)  # fmt: skip
@click.option(
    "--listen", default=DEFAULT_ADDRESS, show_default=True, metavar="HOST:PORT", help="Where clients and machines call."
)
@click.option("--organization", default="Home", show_default=True, help="Name of the one that the first start makes.")
@click.option("--tls-cert", type=click.Path(path_type=Path, exists=True), help="Certificate (PEM); with --tls-key.")
@click.option("--tls-key", type=click.Path(path_type=Path, exists=True), help="Its private key (PEM).")
def command(data: Path, listen: str, organization: str, tls_cert: Path | None, tls_key: Path | None) -> None:
    """Serve the cloud application: configurations with history, keys and logs of machines.

    The first start makes an organization and prints the key of its owner, once.
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    from cloud.app import main as serve

    options = Options(
        data=data,
        address=listen,
        organization=organization,
        tls_cert=tls_cert,
        tls_key=tls_key,
        ready_fd=_ready_fd(),
    )
    sys.exit(serve(options))


def _ready_fd() -> int | None:
    """The descriptor that a parent wants to hear from when the port is open."""
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
    """Run machine-cloud; exits with a code of cloud.options."""
    command.main(prog_name="machine-cloud")


if __name__ == "__main__":
    main()
