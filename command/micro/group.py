"""The commands of `machine micro`. Imports only click."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from command.groups import Commands

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_SEQUENCE: Final = click.option(
    "--sequence",
    type=click.IntRange(1, (1 << 30) - 1),
    required=True,
    help="Number of the image: updates raise it.",
)


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine micro simulate car.json                       a micro server on this computer
  machine micro key signing.pem                         a key for images, and update.key for devices
  machine micro flash /dev/ttyACM0 car.json --update-key update.key --sequence 1
  machine micro package image --key signing.pem --sequence 2 --version 1.1""",
)
def micro() -> None:
    """Run machines on microcontrollers: the micro server, for MicroPython."""


@micro.command(epilog="\b\nExample:\n  machine micro simulate car.json --port 8081")
@click.argument("config", type=_FILE)
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, help="Port on 127.0.0.1.")
@click.option("--micropython", metavar="PROGRAM", help="Run it with this MicroPython instead of Python.")
@click.option("--heap", metavar="SIZE", default="512k", show_default=True, help="Heap of MicroPython.")
def simulate(config: Path, port: int, micropython: str | None, heap: str) -> None:
    """Run a micro server with the machine in CONFIG on this computer until Ctrl-C. Its pins are values."""
    from command.micro.simulate import simulate as do

    raise click.exceptions.Exit(do(config, port, micropython, heap))


@micro.command(epilog="\b\nExample:\n  machine micro key signing.pem")
@click.argument("file", type=click.Path(path_type=Path))
def key(file: Path) -> None:
    """Create a key that signs images in FILE, which must not exist, and `update.key` next to it for devices.

    Keep FILE secret and safe: devices accept only images of this key.
    """
    from command.micro.package import create_key

    _report(lambda: click.echo(f"devices get {create_key(file)}"))


@micro.command(epilog="\b\nExample:\n  machine micro package image --key signing.pem --sequence 2 --version 1.1")
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--key", "key_file", type=_FILE, required=True, help="Key that signs the image; see `machine micro key`.")
@_SEQUENCE
@click.option("--version", required=True, help="Version for people.")
def package(output: Path, key_file: Path, sequence: int, version: str) -> None:
    """Write a signed image of the micro server to OUTPUT. Devices install it from an address, see the documentation."""
    from command.micro.package import sources, write_image

    _report(lambda: click.echo(f"{output}: {write_image(output, key_file, sources(), version, sequence)} bytes"))


@micro.command(epilog="\b\nExample:\n  machine micro flash /dev/ttyACM0 car.json --update-key update.key --sequence 1")
@click.argument("device")
@click.argument("config", type=_FILE)
@click.option("--update-key", type=_FILE, help="Key of the images that the device accepts; without, it is not updated.")
@_SEQUENCE
def flash(device: str, config: Path, update_key: Path | None, sequence: int) -> None:
    """Copy the micro server and the machine in CONFIG to a board with MicroPython at the serial port DEVICE.

    Needs the program mpremote. The board is restarted at the end.
    """
    from command.micro.flash import flash as do

    _report(lambda: do(device, config, update_key, sequence))


def _report(action: object) -> None:
    from schema import MachineError

    assert callable(action)
    try:
        action()
    except MachineError as error:
        raise click.ClickException(str(error)) from None
