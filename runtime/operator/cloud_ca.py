"""`machine cloud ca`: what clients of a cloud and of its machines should trust."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runtime.operator.cloud import ask

if TYPE_CHECKING:
    from rpc.api.client import ApiClient


@click.command("ca")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file, whole or not.")
def ca(output: Path | None) -> None:
    """Print the certificates (PEM) of the cloud's authorities: its own, and those of your organizations' machines.

    For SSL_CERT_FILE of SDKs, `--ca` of these commands, and browsers. `machine-cloud ca` prints them where the cloud
    runs, for whoever trusts it not yet.
    """

    async def work(client: ApiClient) -> None:
        from runtime.operator.cloud_http import answered

        status, content = await answered("GET", "/ca.pem")
        text = content.decode(errors="replace")
        if status != 200:
            raise click.ClickException(text.strip()[:200] or f"the cloud answers {status}")
        if output is None:
            click.echo(text, nl=False)
            return
        part = output.with_name(output.name + ".part")
        part.write_text(text)
        part.replace(output)
        click.echo(f"{output}: {text.count('BEGIN CERTIFICATE')} certificates")

    ask(work)
