"""`machine module run` and `dev`: run a separate machine-server with one module."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import click
import trio

from command.connection import EXIT_INTERRUPTED
from nursery_graph import process_group
from runtime.sdk import HARDWARE_VARIABLE, Meta, read_folder
from schema import ErrorKind, MachineError
from schema.decoding import parse_json

MACHINE: Final = "machine.json"
GRACE: Final = 65.0  # seconds between SIGTERM and SIGKILL: machine-server takes at most 60
START_LIMIT: Final = 30.0  # seconds until the server has opened its port


def document_of(
    folder: Path, meta: Meta, config: Path | None, *, port: int, hardware: str, watch: bool = False
) -> dict[str, Any]:
    """Return the configuration in the file `config`, with the module added.

    The default is machine.json of the folder, or an empty configuration. Raises MachineError if the file cannot be
    read or is not a machine's configuration.
    """
    path = config or folder / MACHINE
    document: Any = {}
    if config is not None or path.is_file():
        try:
            document = parse_json(path.read_bytes())
        except OSError as error:
            raise MachineError(f"{path} cannot be read: {error.strerror}", kind=ErrorKind.NOT_FOUND) from error
        except MachineError as error:
            raise MachineError(f"{path}: {error}", kind=ErrorKind.INVALID) from error
    if not isinstance(document, dict) or not isinstance(document.get("modules", []), list):
        raise MachineError(f"{path} is not a machine's configuration", kind=ErrorKind.INVALID, remedy="write an object")
    entry: dict[str, Any] = {
        "name": meta.name,
        "executable_path": str((folder / meta.entrypoint).absolute()),
        "env": {HARDWARE_VARIABLE: hardware},
        **({"reload_on_change": True} if watch else {}),
    }
    other_entries = [
        module
        for module in document.get("modules", [])
        if not (isinstance(module, dict) and module.get("name") == meta.name)
    ]
    configured_entries = [module for module in document.get("modules", []) if module not in other_entries]
    if configured_entries:  # the configuration's own entry for this module takes precedence, except for the program
        entry = {**configured_entries[0], **entry, "env": {**entry["env"], **configured_entries[0].get("env", {})}}
    network = {**document.get("network", {}), "bind_address": f"localhost:{port}"}
    return {**document, "modules": [*other_entries, entry], "network": network}


class Server:
    """A running machine-server. `ready` is a pipe with lines about its start."""

    def __init__(self, group: Any, ready: trio.lowlevel.FdStream) -> None:
        self.group = group
        self.address = ""
        self._ready = ready
        self._output = ""

    async def wait(self, word: str) -> bool:
        """Return True when the server has written `word` to the pipe, or False if it ended first."""
        while word not in self._output:
            data = await self._ready.receive_some()
            if not data:
                return False
            self._output += data.decode()
        self.address = self._output.split()[0]
        return True


@asynccontextmanager
async def server(
    document: Mapping[str, Any], hardware: str, *options: str, output: Any = None, environment: Mapping[str, str]
) -> AsyncIterator[Server]:
    """Run a machine-server with this document while the context is open. Its files are in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="machine-module-run-") as folder:
        config = Path(folder) / MACHINE
        config.write_text(json.dumps(document))
        read, write = os.pipe()
        try:
            os.set_inheritable(write, True)
            command = [sys.executable, "-m", "runtime.server.cli", "-config", str(config), "-hardware", hardware]
            command += ["-disable-mdns", "-ftdc=false", *options]  # useless for a short-lived server with one user
            server_environment = {"MACHINE_READY_FD": str(write), "MACHINE_HOME": folder}
            async with trio.lowlevel.FdStream(read) as ready:
                async with process_group(
                    command,
                    grace=GRACE,
                    env={**environment, **server_environment},
                    pass_fds=[write],
                    stdout=output,
                    stderr=output,
                ) as group:
                    os.close(write)
                    write = -1
                    yield Server(group, ready)
        finally:
            if write >= 0:
                os.close(write)


def main_run(folder: Path, config: Path | None, hardware: str, port: int, *, debug: bool, watch: bool) -> int:
    """Run the machine until Ctrl-C, and return the exit code. Raises MachineError if it cannot be started."""
    meta, warnings = read_folder(folder)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    document = document_of(folder, meta, config, port=port, hardware=hardware, watch=watch)
    options = ("-debug",) if debug else ()

    return trio.run(_run_server, document, hardware, options)


async def _run_server(document: Mapping[str, Any], hardware: str, options: Sequence[str]) -> int:
    status: int = EXIT_INTERRUPTED
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                nonlocal status
                async with server(document, hardware, *options, environment=os.environ) as running:
                    with trio.move_on_after(START_LIMIT):
                        if await running.wait("\n"):
                            example = f"machine call NAME METHOD --address {running.address}"
                            click.echo(f"the machine is at {running.address}: {example}; stop with Ctrl-C", err=True)
                    status = await running.group.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(serve)
            async for _ in signals:
                nursery.cancel_scope.cancel()
    return status
