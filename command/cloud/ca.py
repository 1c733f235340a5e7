"""`machine cloud ca`: prints the certificates that clients of a cloud and of its machines should trust."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from command.cloud.group import with_client_on_trio

if TYPE_CHECKING:
    from rpc.api import ApiClient


@click.command("ca")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the certificates to this file atomically."
)
@with_client_on_trio
async def ca(client: ApiClient, output: Path | None) -> None:
    """Print the certificates (PEM) of the authorities of the cloud and of your organizations' machines.

    Use them for SSL_CERT_FILE of SDKs, `--ca` of these commands, and browsers. If you do not trust the cloud yet, run
    `machine-cloud ca` on its computer instead.
    """
    from command.cloud.http import get

    status, content = await get("/ca.pem")
    text = content.decode(errors="replace")
    if status != 200:
        raise click.ClickException(text.strip()[:200] or f"the cloud answered with HTTP status {status}")
    if output is None:
        click.echo(text, nl=False)
        return
    part = output.with_name(output.name + ".part")
    part.write_text(text)
    part.replace(output)
    click.echo(f"{output}: {text.count('BEGIN CERTIFICATE')} certificates")
