"""`machine cloud train`: the trainers that are part of the product, as scripts that can be copied and changed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

from command.cloud.group import run_with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.registry.packages import PACKAGES
from command.cloud.training.models import train
from command.output import json_option, print_json

if TYPE_CHECKING:
    from rpc.api import ApiClient

__all__ = ["train"]  # with the commands of this module


@train.command()
@json_option
def trainers(as_json: bool) -> None:
    """List the trainers that are part of this program, which `copy-trainer` copies."""
    from support.text.terminal import table
    from training.client import TRAINERS

    if as_json:
        print_json([{"name": name, "about": trainer.about} for name, trainer in TRAINERS.items()])
        return
    click.echo("\n".join(table(["TRAINER", "TRAINS"], [[name, each.about] for name, each in TRAINERS.items()])))


@train.command("copy-trainer")
@click.argument("trainer")
@click.option("--as", "item", metavar="ITEM", help="Upload it as this training script of the organization.")
@click.option("--version", default="", help="Version of the script; by default that of this program.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the archive to this file to change it."
)
@ORGANIZATION
def copy_trainer(trainer: str, item: str | None, version: str, output: Path | None, organization: str) -> None:
    """Copy TRAINER, with its sources and weights, to a script for `submit-custom`."""
    from schema import MachineError
    from support import version as own
    from training.client import trainer_archive

    if (item is None) == (output is None):
        raise click.UsageError("name one of --as ITEM and --output FILE")
    try:
        content = trainer_archive(trainer)
    except MachineError as error:
        raise click.ClickException(str(error)) from None
    if output is not None:
        try:
            output.write_bytes(content)
        except OSError as error:
            raise click.ClickException(f"{output}: {error.strerror}") from None
        click.echo(f"{output}: {len(content)} bytes; unpack and change it, and upload it with `machine cloud packages`")
        return

    async def work(client: ApiClient) -> None:
        from command.cloud.registry.upload import pieces

        owner = await organization_of(client, organization)
        created = await client.call(
            PACKAGES, "", "create_package", organization_id=owner["id"], name=item, version=version or own(),
            type="ML_TRAINING", platform="any", files=[{"name": f"{trainer}.tar.gz", "size": len(content)}],
            pieces=pieces(io.BytesIO(content), len(content), quiet=False),
        )  # fmt: skip
        script = f"{owner['id']}:{item}"
        click.echo(f"{created['id']} {created['version']} was uploaded")
        click.echo(f"train with it: `machine cloud train submit-custom DATASET MODEL --script {script}`", err=True)

    run_with_client(work, on_trio=True)
