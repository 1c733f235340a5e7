"""The commands of `machine module`. Imports only click."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from command.groups import Commands
from command.output import json_option

_FOLDER: Final = click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path(), metavar="[FOLDER]"
)
_CONFIG: Final = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Configuration of the machine; machine.json of the folder by default. The module is added to it.",
)
_HARDWARE: Final = click.option(
    "--hardware",
    metavar="KIND",
    help="Hardware of machine and module: linux, sim, gpiozero, or module:function.",
)


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine module new rover-arm --namespace acme    a folder with a module that works
  machine module dev rover-arm                     a machine with it; a saved file restarts it
  machine module test rover-arm
  machine module pack rover-arm                    rover-arm/dist/rover-arm.tar.gz""",
)
def module() -> None:
    """Create, run, test and pack a module: a program that provides models."""


@module.command(
    epilog="""\b
Examples:
  machine module new rover-arm
  machine module new rover-arm --namespace acme --folder src/rover-arm"""
)
@click.argument("name")
@click.option(
    "--namespace", default="acme", show_default=True, help="Your namespace in the registry, part of each model's name."
)
@click.option("--folder", type=click.Path(path_type=Path), help="Folder to create; NAME by default.")
def new(name: str, namespace: str, folder: Path | None) -> None:
    """Create a working example called NAME: a driver, its tests, meta.json, and a machine for trying it.

    NAME consists of letters, digits, '-' and '_'. The folder must be empty or not exist.
    """
    from command.modules.new import write
    from schema import MachineError

    target = folder or Path(name)
    try:
        files = write(target, name, namespace)
    except MachineError as error:
        raise click.UsageError(str(error)) from None
    for file in files:
        click.echo(target / file)
    click.echo(f"\nnext step: machine module test {target}")


@module.command(
    epilog="""\b
Examples:
  machine module run
  machine module run rover-arm --hardware sim --port 8081
  machine call mean get_readings                   in another terminal"""
)
@_FOLDER
@_CONFIG
@_HARDWARE
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port of the machine; 0 for any free port.",
)
@click.option("--debug", is_flag=True, help="Log everything.")
def run(folder: Path, config: Path | None, hardware: str | None, port: int, debug: bool) -> None:
    """Run a machine with the module in FOLDER until Ctrl-C.

    This starts a separate machine-server on this computer. The module's data folder is deleted at the end.
    """
    _run(folder, config, hardware, port, debug, watch=False)


@module.command(
    epilog="""\b
Examples:
  machine module dev
  machine module dev rover-arm --hardware sim"""
)
@_FOLDER
@_CONFIG
@_HARDWARE
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port of the machine; 0 for any free port.",
)
@click.option("--debug", is_flag=True, help="Log everything.")
def dev(folder: Path, config: Path | None, hardware: str | None, port: int, debug: bool) -> None:
    """Run a machine with the module in FOLDER, and restart the module when one of its files is saved.

    The rest of the machine keeps running. A module that fails to start is retried until it starts.
    """
    _run(folder, config, hardware, port, debug, watch=True)


def _run(folder: Path, config: Path | None, hardware: str | None, port: int, debug: bool, *, watch: bool) -> None:
    from command.modules.run import main_run
    from schema import MachineError

    try:
        status = main_run(folder, config, hardware or "linux", port, debug=debug, watch=watch)
    except MachineError as error:
        raise click.ClickException(str(error)) from None
    raise click.exceptions.Exit(status)


@module.command(
    epilog="""\b
Examples:
  machine module test
  machine module test rover-arm --no-pytest --hardware linux"""
)
@_FOLDER
@_CONFIG
@_HARDWARE
@click.option("--no-pytest", is_flag=True, help="Leave out the folder's own tests.")
@json_option
def test(folder: Path, config: Path | None, hardware: str | None, no_pytest: bool, as_json: bool) -> None:
    """Test the module in FOLDER: check meta.json, run its own tests, and start it on a machine.

    The machine is a machine-server with simulated hardware, unless --hardware says otherwise. The module must offer
    exactly the models that meta.json lists, and every resource of the configuration must become ready. The exit code is
    1 if there is a problem.
    """
    from command.modules.test import main_test
    from schema import MachineError

    try:
        status = main_test(folder, config, hardware or "sim", own_tests=not no_pytest, as_json=as_json)
    except MachineError as error:
        raise click.ClickException(str(error)) from None
    raise click.exceptions.Exit(status)


@module.command(
    epilog="""\b
Examples:
  machine module pack
  machine module pack rover-arm --output rover-arm-1.0.tar.gz --exclude 'test_*' --exclude docs"""
)
@_FOLDER
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="dist/NAME.tar.gz by default.")
@click.option(
    "--exclude", multiple=True, metavar="PATTERN", help="Also leave out files and folders with names that match."
)
def pack(folder: Path, output: Path | None, exclude: tuple[str, ...]) -> None:
    """Pack the module in FOLDER, with its meta.json, into an archive for the registry or `executable_path`.

    Names that begin with a dot, __pycache__, virtual environments, dist, artifacts, and archives are left out. The same
    files result in the same archive.
    """
    from runtime.sdk import pack as do
    from runtime.sdk import read_folder
    from schema import MachineError

    try:
        meta, warnings = read_folder(folder)
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        archive = output or folder / "dist" / f"{meta.name}.tar.gz"
        _, count = do(folder, archive, exclude)
    except MachineError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{archive}: {count} files, {archive.stat().st_size / 1024:.1f} KiB")
