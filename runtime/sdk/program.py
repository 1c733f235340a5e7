"""The program of a module: command line, signals, exit codes."""

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

from engine import Resource, open_hardware
from hal.sim import World
from nursery_graph import Overdue
from rpc.network import open_listeners, open_unix_listener
from runtime.sdk.logs import MachineSink
from runtime.sdk.module import RunningModule
from runtime.sdk.offers import OfferedDrivers
from runtime.sdk.start import ModuleStart, parse_start
from schema import MachineError
from schema.document import LogRule, MachineDocument, ResourceEntry
from support import STOP_SIGNALS
from telemetry.logs import ConsoleSink, Logs, configure_logs
from telemetry.logs.logger_names import of_module

EXIT_OK: Final = 0  # stopped on request, or the machine has ended
EXIT_FAILED: Final = 1  # could not start
EXIT_USAGE: Final = 2  # the command line or the drivers are wrong
EXIT_STUCK: Final = 3  # did not stop in time when requested
MODELS: Final = "--models"
"""Argument to print the models in the form of meta.json and exit; the only one that is not part of the protocol."""


def run_module(*drivers: type[Resource]) -> None:
    """Run a module that offers these drivers until the machine stops it or has ended; then exit the process.

    Each driver is a class with the decorator `model` (see docs/howto/write-a-driver.md). This function does not return.
    The exit code is 0 if it was stopped, 1 if it could not start, 2 for a wrong command line or wrong drivers, 3 if it
    did not stop in time.
    """
    raise SystemExit(main(drivers, sys.argv[1:]))


def main(drivers: Sequence[type[Resource]], arguments: Sequence[str]) -> int:
    """Run a module like `run_module`, and return the exit code."""
    try:
        offers = OfferedDrivers(drivers)
        if list(arguments) == [MODELS]:
            import json

            sys.stdout.write(json.dumps(offers.describe(), indent=2) + "\n")
            return EXIT_OK
        start = parse_start(arguments, os.environ)
    except MachineError as error:
        return _refuse(error, EXIT_USAGE)
    sink = MachineSink(socket.gethostname(), ConsoleSink(2))
    logs = configure_logs([sink])
    try:
        return trio.run(_run, offers, start, sink, logs)
    except MachineError as error:
        return _refuse(error, EXIT_FAILED)
    finally:
        logs.close()


async def _run(offers: OfferedDrivers, start: ModuleStart, sink: MachineSink, logs: Logs) -> int:
    def configured(entries: Sequence[ResourceEntry]) -> None:
        logs.apply(levels(start.level, entries))

    configured(())
    log = structlog.get_logger(of_module(start.name))
    if start.ignored:
        log.warning("unknown arguments are ignored", arguments=list(start.ignored))
    world = World()
    hardware = open_hardware(start.hardware, world)
    module = RunningModule(
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


async def _stop_on_signals(module: RunningModule, *, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(*STOP_SIGNALS) as signals:
        task_status.started()
        async for number in signals:
            module.stop(f"received {signal.Signals(number).name}")


def levels(level: str, entries: Sequence[ResourceEntry]) -> MachineDocument:
    """Return a document with log levels: `level`, and those of the entries."""
    return MachineDocument(
        components=tuple(entries),
        log=(LogRule(pattern="*", level=level),),
        disable_log_deduplication=True,  # the machine deduplicates for all its modules
    )


def _refuse(error: MachineError, code: int) -> int:
    sys.stderr.write(f"{Path(sys.argv[0]).name}: {error}\n")
    return code


def _overdue(overdue: Overdue) -> None:
    sys.stderr.write(f"the module did not stop in time; still running:\n{overdue}\n")
    sys.stderr.flush()
    os._exit(EXIT_STUCK)
