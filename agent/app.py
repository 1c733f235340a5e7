"""Composition of machine-agent: start-up, the parts that run without credentials, shutdown and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio

from agent.composition import MINOR, Agent
from agent.console.server import Command, serve
from agent.control.settings import SettingsState
from agent.credentials import UsableCredentials, credentials_limit, is_on_trial, usable_credentials
from agent.folders import locked, prepare
from agent.layout import Layout
from agent.parts import PartStates, at_once, part
from agent.server import ManagedServer
from agent.shutdown import STOP_LIMIT, end_overdue, limit_stop
from agent.supervise.systemd import has_systemd
from agent.supervise.watchdog import Watchdog
from agent.updates import SPEED
from nursery_graph import Graph, Node
from schema import ErrorKind, MachineError
from support import ServiceManager, Worker, held_signal, unwrap, version
from telemetry.logs import ConsoleSink, Logs, Rules, configure_logs
from uplink import address_of, with_channel

if TYPE_CHECKING:
    from agent.network.agent_network import AgentNetwork

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1

_log = structlog.get_logger("agent")


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of the command line."""

    config: Path
    defaults: Path
    debug: bool = False
    wait: bool = False
    dev_mode: bool = False
    fast_start: bool = False
    root: Path | None = None

    @property
    def layout(self) -> Layout:
        """The files and folders. Without root rights both are below the user's own folders."""
        if not self.dev_mode:
            return Layout(self.root) if self.root is not None else Layout()
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
        root = self.root if self.root is not None else data / "machine"
        return Layout(root, root / "run")


def main(options: AgentOptions) -> int:
    """Run the agent until it is stopped; return the exit code."""
    logs = configure_logs([ConsoleSink()])
    logs.set_rules(Rules(debug=options.debug))
    layout = options.layout
    try:
        problems = prepare(layout)
        with locked(layout.lock):
            systemd = not options.dev_mode and has_systemd()
            if not systemd:
                _use_package(layout)
            for problem in problems:
                _log.warning("the permissions of a folder cannot be repaired", problem=problem)
            return trio.run(_run, options, layout, logs, systemd)
    except (MachineError, BaseExceptionGroup) as error:
        reason = unwrap(error) if isinstance(error, BaseExceptionGroup) else error
        if not isinstance(reason, MachineError):
            raise
        sys.stderr.write(f"machine-agent: {reason}\n")
        return EXIT_FAILED
    finally:
        logs.close()


def _use_package(layout: Layout) -> None:
    from agent.install.install import use_package  # not needed below systemd

    try:
        use_package(layout)
    except OSError as error:
        raise MachineError(
            f"machine-server cannot be prepared below {layout.root}: {error}",
            remedy="check the permissions of the folder and the free space of the disk",
        ) from None


async def _run(options: AgentOptions, layout: Layout, logs: Logs, systemd: bool) -> int:
    worker, manager = Worker("files of the agent"), ServiceManager.from_environment()
    async with worker.opened(), trio.open_nursery() as nursery:
        app = AgentApp(options, layout, logs, worker, manager, systemd=systemd)
        await nursery.start(_stop_on_signal, app)
        nursery.start_soon(_say_stopping, app, manager)
        nursery.start_soon(app.states.follow, app.part_failed)
        _log.info("starting", version=version(), pid=os.getpid(), root=str(layout.root))
        # A device may wait for its credentials for months: systemd must not end an agent that is not "ready" by then.
        await manager.send(READY="1", STATUS=f"machine-agent {version()}: waits for credentials in {options.config}")
        await app.settings.load()
        app.start()
        await app.graph.run()
        nursery.cancel_scope.cancel()
    if app.failure:
        sys.stderr.write(f"machine-agent: {app.failure}\n")
        return EXIT_FAILED
    _log.info("stopped")
    return EXIT_OK


class AgentApp:
    """A process of machine-agent. `failure` says why it ends, unless that was requested."""

    def __init__(
        self,
        options: AgentOptions,
        layout: Layout,
        logs: Logs,
        worker: Worker,
        manager: ServiceManager,
        *,
        systemd: bool,
    ) -> None:
        self.graph = Graph(shutdown_timeout=STOP_LIMIT, on_overdue=end_overdue)
        self.states = PartStates(self.graph)
        self.stopping = trio.Event()
        self.failure = ""
        self.settings = SettingsState(options.defaults, layout.state / "settings.json", worker.run)
        self._options, self._layout, self._logs, self._worker = options, layout, logs, worker
        self._manager, self._systemd = manager, systemd
        self._watchdog = Watchdog(manager)
        self._network: AgentNetwork | None = None
        self._commands: dict[str, Command] = {"status": self._status_before}
        self._begun = trio.current_time()
        self._speed = _clock_speed()
        self._used: UsableCredentials | None = None
        self._first: list[Node] = []

    def start(self) -> None:
        """Start the parts that run without credentials, which also wait for them. The settings must be loaded."""
        self._first = self._first_nodes()
        self.graph.apply(self._first)

    def _first_nodes(self) -> list[Node]:
        nodes = [part("watchdog", at_once(self._watchdog.run))] if self._manager.watchdog > 0 else []
        if self._systemd:
            from agent.network.agent_network import AgentNetwork  # 8 MiB, which only an installed agent needs

            self._network = AgentNetwork(self._layout, self.settings, self._options.config, self._worker)
            self._commands.update(self._network.commands())
            nodes.append(self._network.node())
        return [
            *nodes,
            part("console", partial(serve, self._layout.console, self._commands)),
            part("credentials", at_once(self._follow_credentials)),
        ]

    def stop(self, reason: str) -> None:
        """Stop all parts in order, and end."""
        if not self.stopping.is_set():
            _log.info("stopping", reason=reason)
            limit_stop()
            self.stopping.set()
        self.graph.stop(reason)

    def fail(self, reason: str) -> None:
        """Stop all parts in order, and end with EXIT_FAILED."""
        self.failure = self.failure or reason
        self.stop(reason)

    async def part_failed(self, name: str, reason: str) -> None:
        """End a release on trial if an important part of it fails, so that the launcher counts its starts.

        A failed part cannot judge the release. After the trial, the other parts go on.
        """
        minor = name.partition(":")[0] in MINOR
        if not minor and not self.stopping.is_set() and await self._worker.run(partial(is_on_trial, self._layout)):
            self.fail(f"this release is on trial, and its part {name!r} has failed: {reason}")

    def _status_before(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        raise MachineError(
            f"the agent waits for credentials in {self._options.config}", kind=ErrorKind.UNAVAILABLE,
            remedy="copy them from the machine's page in the cloud",
        )  # fmt: skip

    async def _follow_credentials(self) -> None:
        """Wait for credentials, and run all parts with them; end when they change, so that the new ones are used."""
        limit = await self._worker.run(partial(credentials_limit, self._layout, self._speed))
        async with aclosing(usable_credentials(self._options.config)) as changes:
            while True:
                with trio.move_on_at(float("inf") if self._used is not None else self._begun + limit) as scope:
                    credentials = await anext(changes)
                if scope.cancelled_caught:
                    self.fail(f"this release is on trial and has had no usable credentials for {limit:g} s")
                    await trio.sleep_forever()
                if self._used is None:
                    await self._use(credentials)
                elif credentials.data != self._used.data:
                    self.stop("the credentials have changed: the agent starts again")

    async def _use(self, credentials: UsableCredentials) -> None:
        try:
            agent = await self._agent(credentials)
        except MachineError as error:
            self.fail(str(error))
            await trio.sleep_forever()
        self._used = credentials
        if self._network is not None:
            self._network.use(credentials.cloud)
        self._commands.update(agent.commands())
        self.graph.apply([*self._first, *agent.nodes()])
        await self._manager.send(STATUS=f"machine-agent {version()}")

    async def _agent(self, credentials: UsableCredentials) -> Agent:
        options, layout = self._options, self._layout
        server = await self._worker.run(
            partial(
                ManagedServer, layout, options.config.absolute(), self._worker,
                systemd=self._systemd, wait=options.wait, fast=options.fast_start,
            )
        )  # fmt: skip
        address, channel = with_channel(address_of(credentials.cloud, options.config.parent))
        return Agent(
            layout, self._logs, self._worker, credentials.cloud, address, channel, server, self._watchdog,
            self.settings, self._network, self.states,
            installed=self._systemd,
            end=self.stop,
            refresh=partial(_refresh, options.config.absolute(), options.defaults.absolute()),
            speed=self._speed,
            debug=options.debug,
        )  # fmt: skip


def _refresh(config: Path, defaults: Path) -> None:
    from agent.install.refresh import refresh_files  # after an update only

    refresh_files(config, defaults)


async def _say_stopping(app: AgentApp, manager: ServiceManager) -> None:
    await app.stopping.wait()
    await manager.send(STOPPING="1")


async def _stop_on_signal(app: AgentApp, *, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        early = held_signal()
        number = early if early is not None else await anext(signals)
        app.stop(f"received {signal.Signals(number).name}")


def _clock_speed() -> float:
    """Return how much faster the times of updates pass, for tests: only root can set it in the unit of the agent."""
    try:
        speed = max(1.0, float(os.environ.get(SPEED, "1")))
    except ValueError:
        return 1.0
    if speed > 1.0:
        _log.warning("the times of updates pass faster, for tests only", times=speed, variable=SPEED)
    return speed
