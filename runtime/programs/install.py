"""Prepares the program of a module's entry: unpacks archives and runs their first_run program once."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import structlog
import trio

from engine import home
from nursery_graph import ProcessFailed, process_group
from runtime.programs import archive
from runtime.programs.command import Program, absolute, local_program
from runtime.programs.output import Output
from schema import ConfigError, ErrorKind, MachineError
from schema.document import Module
from support import Worker, ungrouped
from telemetry.logs.logger_names import of_module


def packages_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder in which local archives are unpacked."""
    return home(environment) / "packages-local"


async def prepared(module: Module, path: str, environment: Mapping[str, str]) -> Program:
    """Return the program of a module, unpacking its archive if it is one. Raises MachineError.

    The folders of the module's older archives are removed. Cancellation leaves no partly unpacked folder.
    """
    if module.type == "registry":
        return _of_registry(module, path, environment)
    if not module.is_archive:
        return local_program(module, path)
    source = absolute(module.executable_path)
    if not source.is_file():
        raise ConfigError(
            f"{path}.executable_path", "there is no such file", value=str(source), remedy="correct the path"
        )
    packages = packages_folder(environment)
    worker = Worker(f"unpacking {source.name}")
    async with worker.opened():
        program = await archive.prepare(source, packages, module.name, worker)
        await worker.run(partial(archive.remove_others, packages, module.name, program.root))
        return program


def _of_registry(module: Module, path: str, environment: Mapping[str, str]) -> Program:
    """Return the program of a registry module, which runtime.parts.packages has installed."""
    from runtime.programs.store import folder, root_of

    if module.source is None or not module.source.sha256:
        raise ConfigError(
            f"{path}.module_id",
            "the source of this module is not known",
            value=module.module_id or module.name,
            remedy="join a cloud whose registry has the module, or set type to local for a program on this computer",
        )
    place = folder(root_of(environment), ("module", module.name), module.source.sha256)
    return archive.read_meta(place, place)


async def remove(module: str, data: Path, environment: Mapping[str, str]) -> None:
    """Remove the data folder and the unpacked archives of a module that is no longer configured."""
    folder = data / module
    await trio.lowlevel.checkpoint()
    # Renamed here, not in the worker: until the worker runs, the module may be configured again and use the folder.
    archive.rename_for_removal(folder)
    worker = Worker(f"removing {module}")
    async with worker.opened():
        await worker.run(partial(archive.remove_renamed, folder))
        await worker.run(partial(archive.remove_others, packages_folder(environment), module, None))


async def first_run(module: Module, program: Program, environment: Mapping[str, str]) -> None:
    """Run the first_run program of an archive unless it has already succeeded. Raises MachineError."""
    marker = archive.marker_of(program.root)
    if program.first_run is None or marker.exists():
        return
    log = structlog.get_logger(of_module(module.name))
    log.info("first run started", program=str(program.first_run), limit=module.first_run_limit)
    output = Output(of_module(module.name))
    status: int | None = None
    try:
        with trio.move_on_after(module.first_run_limit):
            async with process_group(
                [str(program.first_run)],
                cwd=program.root,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as group:
                with ungrouped(OSError):
                    async with trio.open_nursery() as nursery:
                        output.follow(nursery, group.process)
                        status = await group.wait()
                        await output.ended()
                        nursery.cancel_scope.cancel()
    except OSError as error:
        raise MachineError(
            f"{program.first_run} cannot be started: {error.strerror}", kind=ErrorKind.PRECONDITION
        ) from error
    if status is None:
        raise MachineError(
            f"{program.first_run} did not end within {module.first_run_limit:g} s{output.last_output()}",
            kind=ErrorKind.TIMEOUT,
            remedy="increase first_run_timeout of the module",
        )
    if status:
        raise MachineError(
            f"first run: {ProcessFailed([program.first_run.name], status)}{output.last_output()}",
            kind=ErrorKind.PRECONDITION,
            remedy="it will be repeated until it succeeds",
        )
    marker.touch()
    log.info("first run succeeded")
