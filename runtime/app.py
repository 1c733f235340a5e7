"""Composition of machine-server: what lives, in which order it comes up, how it goes down, with which exit code."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import trio

from hal.ports.hardware import Hardware
from hal.sim import World
from nursery_graph import Graph, Overdue, State
from runtime.activity import Activity, TransitionLog
from runtime.configuration import Configuration, Source
from runtime.hardware import open_hardware
from runtime.machine import Machine
from runtime.options import EXIT_FAILED, EXIT_OK, EXIT_STUCK, Options
from runtime.reasons import reason_of
from runtime.registry import Registry
from runtime.serving import NODE as RPC
from runtime.serving import Serving
from runtime.version import version
from schema.errors import MachineError
from telemetry.activity import tell
from telemetry.early_stop import held
from telemetry.log import Logs, configure
from telemetry.sinks import ConsoleSink, FileSink, Sink
from uplink.files import FileSource, Reading, decode_text

if TYPE_CHECKING:
    from runtime.cloud.link import CloudLink

STOP_LIMIT: Final = 60.0  # seconds for the whole orderly stop; reference value
HASTE_LIMIT: Final = 2.0  # seconds left after a second signal
STALL_LIMIT: Final = 5.0  # seconds beyond STOP_LIMIT after which even an event loop that stands still is ended


def main(options: Options) -> int:
    """Run one machine until it is told to stop; the exit code."""
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
        from runtime.cloud.link import open_link

        try:
            link = open_link(decoded.document.cloud, reading.data or b"", os.environ, source.path.parent)
        except MachineError as error:
            return _cannot_start([f"-config {options.config}: {error}"])
        sinks.append(link.sink)
    logs = configure(sinks)
    logs.apply(decoded.document, debug=options.debug)
    try:
        return trio.run(_serve, options, world, hardware, source if link is None else link, logs)
    finally:
        faulthandler.cancel_dump_traceback_later()
        logs.close()


def _cannot_start(reasons: Iterable[str]) -> int:
    sys.stderr.write("".join(f"machine-server: {reason}\n" for reason in reasons))
    return EXIT_FAILED


def _reason(reading: Reading) -> str:
    return reading.problem.reason if reading.problem is not None else "cannot be read"


async def _serve(
    options: Options,
    world: World,
    hardware: Hardware,
    origin: FileSource | CloudLink,
    logs: Logs,
) -> int:
    graph = Graph(shutdown_timeout=STOP_LIMIT, on_overdue=_overdue)
    machine = Machine(options, registry=Registry(), graph=graph, log_ring=logs.ring, world=world, hardware=hardware)
    source: Source = origin if isinstance(origin, FileSource) else origin.source
    if not isinstance(origin, FileSource):
        machine.cloud = origin
        origin.attach(machine)
    configuration = Configuration(machine, Serving(machine), logs, source, os.environ)
    machine.log.info("starting", config=str(options.config), pid=os.getpid())
    if options.webrtc:
        machine.log.info("WebRTC is not built yet: clients connect directly")
    tell("server", "startup", version=version(), config=str(options.config), pid=os.getpid())
    graph.subscribe(TransitionLog().note)
    graph.subscribe(Activity().note)
    graph.apply([configuration.node()])
    async with trio.open_nursery() as nursery:
        await nursery.start(_signals, machine)
        nursery.start_soon(_announce, machine)
        nursery.start_soon(_stop_when_asked, machine)
        await graph.run()
        nursery.cancel_scope.cancel()
    if machine.failed:
        if options.log_file is not None:
            _cannot_start([f"{machine.stop_reason} (details in {options.log_file})"])
        return EXIT_FAILED
    machine.log.info("stopped", reason=machine.stop_reason)
    return EXIT_OK


async def _signals(machine: Machine, *, task_status: trio.TaskStatus[None]) -> None:
    """The first signal asks for an orderly stop, another one leaves it HASTE_LIMIT seconds."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        early = held()
        number = early if early is not None else await anext(signals)
        machine.request_stop(f"received {signal.Signals(number).name}")
        number = await anext(signals)
        machine.log.warning("told to stop again", signal=signal.Signals(number).name, seconds_left=HASTE_LIMIT)
        _watch_the_loop(HASTE_LIMIT)
        await trio.sleep(HASTE_LIMIT)
        snapshot = machine.graph.snapshot(tasks=True)
        _end({name: node.tasks for name, node in snapshot.nodes.items() if node.tasks})


async def _stop_when_asked(machine: Machine) -> None:
    await machine.stopping.wait()
    reason = "it could not start" if machine.failed else machine.stop_reason
    machine.log.info("stopping", reason=reason)
    tell("server", "shutdown", reason=reason)
    _watch_the_loop(STOP_LIMIT)
    machine.graph.stop(machine.stop_reason)


async def _announce(machine: Machine) -> None:
    """Tell the parent when the port is open and when all is tried; end the process if the port cannot be opened."""
    async for snapshot in machine.graph.changes():
        node = snapshot.nodes.get(RPC)
        if node is not None and node.state is State.READY:
            break
        if node is not None and node.state is State.UNHEALTHY:
            machine.failed = True  # the log has the reason: see TransitionLog
            machine.request_stop(reason_of(node))
            return
    descriptor = machine.options.ready_fd
    if descriptor is None:
        return
    try:
        os.write(descriptor, "".join(f"{address}\n" for address in machine.addresses).encode())
        await machine.running.wait()
        os.write(descriptor, b"running\n")
    except OSError:
        machine.log.info("MACHINE_READY_FD is not read any more")
    finally:
        os.close(descriptor)


def _watch_the_loop(seconds: float) -> None:
    """End the process with a dump of all stacks if the event loop stands still beyond its own limit."""
    if sys.stderr is not None:
        faulthandler.dump_traceback_later(seconds + STALL_LIMIT, exit=True)


def _overdue(overdue: Overdue) -> None:
    _end(overdue.tasks)


def _end(tasks: Mapping[str, Sequence[str]]) -> None:
    """The last word: say what still runs and end the process without waiting for it."""
    sys.stderr.write("machine-server did not stop in time; still running:\n")
    for name, lines in tasks.items():
        sys.stderr.write("".join(f"{line}\n" for line in (f"{name}:", *(f"  {line}" for line in lines))))
    sys.stderr.flush()
    os._exit(EXIT_STUCK)
