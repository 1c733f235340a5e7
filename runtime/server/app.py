"""Composition of machine-server: start-up, signals, shutdown and exit codes."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import trio

from engine import EXIT_FAILED, EXIT_OK, EXIT_STUCK, Bench, Options, Registry, open_hardware
from engine.planning import RPC, reason_of
from hal import Hardware
from hal.sim import World
from models import BUILTIN
from nursery_graph import Graph, Overdue, State
from runtime.server.activity import Activity, TransitionLog
from runtime.server.configuration import Configuration, DocumentSource
from runtime.server.machine import Machine
from runtime.server.port.serving import Serving
from schema import MachineError
from support import STOP_SIGNALS, held_signal, version
from telemetry.logs import ConsoleSink, FileSink, Logs, Sink, configure_logs, log_event
from telemetry.metrics import loop_passes
from uplink import FileReading, FileSource, decode_text

if TYPE_CHECKING:
    from runtime.parts.cloud.link import CloudLink
    from runtime.server.pages.view import MachineSource

STOP_LIMIT: Final = 60.0  # seconds for the whole orderly shutdown; reference value
SECOND_SIGNAL_LIMIT: Final = 2.0  # seconds that remain after a second signal
STALL_LIMIT: Final = 5.0  # seconds after the limit of a shutdown until the process is ended even if the loop hangs


def main(options: Options) -> int:
    """Run a machine until it is stopped; returns the exit code."""
    source = FileSource(options.config)
    reading = source.read()
    decoded = decode_text(reading.data, os.environ) if reading.data is not None else None
    if decoded is None or decoded.document is None:
        problems = [str(error) for error in decoded.problems] if decoded else [_reason(reading)]
        return _cannot_start(f"-config {options.config}: {problem}" for problem in problems)
    try:
        sinks: list[Sink] = [FileSink(options.log_file) if options.log_file else ConsoleSink()]
    except OSError as error:
        return _cannot_start([f"-log-file {options.log_file}: {error.strerror}"])
    world = World()
    try:
        hardware = open_hardware(options.hardware, world)
    except MachineError as error:
        return _cannot_start([f"-hardware {options.hardware}: {error}"])
    link: CloudLink | None = None
    if decoded.document.cloud is not None and decoded.document.cloud.app_address:
        from runtime.parts.cloud.link import open_link

        try:
            cloud, folder = decoded.document.cloud, source.path.parent
            link = open_link(cloud, reading.data or b"", os.environ, folder, webrtc=options.webrtc)
        except MachineError as error:
            return _cannot_start([f"-config {options.config}: {error}"])
        sinks.append(link.sink)
    logs = configure_logs(sinks)
    logs.apply(decoded.document, debug=options.debug)
    try:
        return trio.run(_serve, options, world, hardware, source if link is None else link, logs)
    finally:
        faulthandler.cancel_dump_traceback_later()
        logs.close()


def _cannot_start(reasons: Iterable[str]) -> int:
    sys.stderr.write("".join(f"machine-server: {reason}\n" for reason in reasons))
    return EXIT_FAILED


def _reason(reading: FileReading) -> str:
    return reading.problem.reason if reading.problem is not None else "cannot be read"


async def _serve(
    options: Options,
    world: World,
    hardware: Hardware,
    origin: FileSource | CloudLink,
    logs: Logs,
) -> int:
    loop_passes()
    graph = Graph(shutdown_timeout=STOP_LIMIT, on_overdue=_overdue)
    link = None if isinstance(origin, FileSource) else origin
    machine = Machine(
        options,
        registry=Registry(BUILTIN),
        graph=graph,
        log_ring=logs.ring,
        bench=Bench(world, hardware),
        cloud=link,
    )
    source: DocumentSource = origin if isinstance(origin, FileSource) else origin.source
    if link is not None:
        machine.configured.fetched = lambda: link.source.fetched
        link.attach(
            cache(partial(_view_of, machine)), lambda: machine.configured.masker, machine.lifecycle.request_stop
        )
    configuration = Configuration(machine, Serving(machine), logs, source, os.environ)
    machine.log.info("starting", config=str(options.config), pid=os.getpid())
    log_event("server", "startup", version=version(), config=str(options.config), pid=os.getpid())
    graph.subscribe(TransitionLog().note)
    graph.subscribe(Activity().note)
    graph.apply([configuration.node()])
    async with trio.open_nursery() as nursery:
        await nursery.start(_signals, machine)
        nursery.start_soon(_announce, machine)
        nursery.start_soon(_stop_when_asked, machine)
        await graph.run()
        nursery.cancel_scope.cancel()
    if machine.lifecycle.failed:
        if options.log_file is not None:
            _cannot_start([f"{machine.lifecycle.stop_reason} (details in {options.log_file})"])
        return EXIT_FAILED
    machine.log.info("stopped", reason=machine.lifecycle.stop_reason)
    return EXIT_OK


def _view_of(machine: Machine) -> MachineSource:
    from runtime.server.pages.view import MachineSource

    return MachineSource(machine)


async def _signals(machine: Machine, *, task_status: trio.TaskStatus[None]) -> None:
    """Request an orderly shutdown on the first signal; a second one limits it to SECOND_SIGNAL_LIMIT seconds."""
    with trio.open_signal_receiver(*STOP_SIGNALS) as signals:
        task_status.started()
        early = held_signal()
        number = early if early is not None else await anext(signals)
        machine.lifecycle.request_stop(f"received {signal.Signals(number).name}")
        number = await anext(signals)
        machine.log.warning(
            "received a second stop signal", signal=signal.Signals(number).name, seconds_left=SECOND_SIGNAL_LIMIT
        )
        _limit_shutdown(SECOND_SIGNAL_LIMIT)
        await trio.sleep(SECOND_SIGNAL_LIMIT)
        snapshot = machine.graph.snapshot(tasks=True)
        _end({name: node.tasks for name, node in snapshot.nodes.items() if node.tasks})


async def _stop_when_asked(machine: Machine) -> None:
    await machine.lifecycle.stopping.wait()
    reason = "it could not start" if machine.lifecycle.failed else machine.lifecycle.stop_reason
    machine.log.info("stopping", reason=reason)
    log_event("server", "shutdown", reason=reason)
    _limit_shutdown(STOP_LIMIT)
    machine.graph.stop(machine.lifecycle.stop_reason)


async def _announce(machine: Machine) -> None:
    """Notify the parent process when the port is open and when all resources have been tried.

    If the port cannot be opened, request a stop.
    """
    async for snapshot in machine.graph.changes():
        node = snapshot.nodes.get(RPC)
        if node is not None and node.state is State.READY:
            break
        if node is not None and node.state is State.UNHEALTHY:
            machine.lifecycle.failed = True  # the log has the reason: see TransitionLog
            machine.lifecycle.request_stop(reason_of(node))
            return
    descriptor = machine.options.ready_fd
    if descriptor is None:
        return
    try:
        os.write(descriptor, "".join(f"{address}\n" for address in machine.endpoint.addresses).encode())
        await machine.lifecycle.running.wait()
        os.write(descriptor, b"running\n")
    except OSError:
        machine.log.info("the parent process closed MACHINE_READY_FD")
    finally:
        os.close(descriptor)


def _limit_shutdown(seconds: float) -> None:
    """End the process with a dump of all stacks if the event loop hangs beyond its own limit."""
    if sys.stderr is not None:
        faulthandler.dump_traceback_later(seconds + STALL_LIMIT, exit=True)


def _overdue(overdue: Overdue) -> None:
    _end(overdue.tasks)


def _end(tasks: Mapping[str, Sequence[str]]) -> None:
    """Print the tasks that are still running, and end the process without waiting for them."""
    sys.stderr.write("machine-server did not stop in time; still running:\n")
    for name, lines in tasks.items():
        sys.stderr.write("".join(f"{line}\n" for line in (f"{name}:", *(f"  {line}" for line in lines))))
    sys.stderr.flush()
    os._exit(EXIT_STUCK)
