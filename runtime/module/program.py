"""A module as a program: from its arguments to its exit code."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog
import trio

from hal.sim import World
from nursery_graph import Overdue
from rpc.listeners import open_listeners, open_unix_listener
from runtime.hardware import open_hardware
from runtime.module.logs import MachineSink
from runtime.module.module import Module
from runtime.module.offers import Offers
from runtime.module.start import Start, parse_start
from runtime.resource import Resource
from schema.errors import MachineError
from schema.log import LogRule
from schema.machine import MachineDocument, ResourceEntry
from telemetry.log import Logs, configure
from telemetry.names import of_module
from telemetry.sinks import ConsoleSink

EXIT_OK: Final = 0  # stopped as asked, or the machine has ended
EXIT_FAILED: Final = 1  # could not start
EXIT_USAGE: Final = 2  # the command line is wrong, or the drivers are
EXIT_STUCK: Final = 3  # asked to stop, but did not within the limit
MODELS: Final = "--models"
"""The only argument that is not the protocol's: print what the module offers, as meta.json lists it, and end."""


def run_module(*drivers: type[Resource]) -> None:
    """Be a module that offers these drivers, until the machine says stop or has ended; then end the process.

    Each is a class as docs/howto/write-a-driver.md shows it, with the decorator `model`. Call it last: it does not
    return. Exits with 0 when it was stopped, 1 if it could not start, 2 for a wrong command line, 3 if it did not
    stop in time.
    """
    raise SystemExit(main(drivers, sys.argv[1:]))


def main(drivers: Sequence[type[Resource]], arguments: Sequence[str]) -> int:
    """As `run_module`, with the exit code as result."""
    try:
        offers = Offers(drivers)
        if list(arguments) == [MODELS]:
            import json

            sys.stdout.write(json.dumps(offers.describe(), indent=2) + "\n")
            return EXIT_OK
        start = parse_start(arguments, os.environ)
    except MachineError as error:
        return _refuse(error, EXIT_USAGE)
    sink = MachineSink(socket.gethostname(), ConsoleSink(2))
    logs = configure([sink])
    try:
        return trio.run(_run, offers, start, sink, logs)
    except MachineError as error:
        return _refuse(error, EXIT_FAILED)
    finally:
        logs.close()


async def _run(offers: Offers, start: Start, sink: MachineSink, logs: Logs) -> int:
    def configured(entries: Sequence[ResourceEntry]) -> None:
        logs.apply(levels(start.level, entries))

    configured(())
    log = structlog.get_logger(of_module(start.name))
    if start.ignored:
        log.warning("these arguments are not understood", arguments=list(start.ignored))
    world = World()
    hardware = open_hardware(start.hardware, world)
    module = Module(
        offers, start.name, sink, world=world, hardware=hardware, configured=configured, on_overdue=_overdue
    )
    listeners = await open_listeners(start.address) if start.tcp else [await open_unix_listener(Path(start.address))]
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(_stop_on_signals, module)
            await module.run(listeners)
            nursery.cancel_scope.cancel()
    finally:
        if not start.tcp:
            Path(start.address).unlink(missing_ok=True)  # noqa: ASYNC240 - at the very end
    return EXIT_OK


async def _stop_on_signals(module: Module, *, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for number in signals:
            module.stop(f"got {signal.Signals(number).name}")


def levels(level: str, entries: Sequence[ResourceEntry]) -> MachineDocument:
    """The document that says what is logged: `level`, and the level of each entry that has one."""
    return MachineDocument(
        components=tuple(entries),
        log=(LogRule(pattern="*", level=level),),
        disable_log_deduplication=True,  # the machine does that, for all its modules
    )


def _refuse(error: MachineError, code: int) -> int:
    sys.stderr.write(f"{Path(sys.argv[0]).name}: {error}\n")
    return code


def _overdue(overdue: Overdue) -> None:
    sys.stderr.write(f"the module did not stop in time; still running:\n{overdue}\n")
    sys.stderr.flush()
    os._exit(EXIT_STUCK)
