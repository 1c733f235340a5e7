"""Composition of machine-agent: start-up, the tasks of its parts, shutdown and exit codes."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
import trio

from agent.commands import LeaseCommands, UpdateCommands
from agent.configure.configuration import SystemConfigurator
from agent.console.server import Command, serve
from agent.control.fetch import Fetched, Fetcher, Versions
from agent.control.logs import apply_to_logs
from agent.control.report import Problem, Report, problems_of, program_report
from agent.control.reporter import Reporter
from agent.control.requests import follow_requests
from agent.control.restarts import REASON, follow_restarts
from agent.control.settings import SettingsState
from agent.folders import locked, prepare
from agent.launch.links import read as read_launch
from agent.layout import AGENT, Layout
from agent.server import LONGEST_STEP, ManagedServer
from agent.supervise.systemd import has_systemd
from agent.supervise.watchdog import Watchdog
from agent.system.host import host_facts
from agent.updates import RELEASE, SPEED, Updates
from rpc.api import ApiClient
from schema import ErrorKind, MachineError
from schema.agent import NetworkConfiguration, Settings
from schema.document import Cloud, decode_document
from support import ServiceManager, Worker, held_signal, unwrap, version
from telemetry.logs import ConsoleSink, Logs, OutboxSink, Rules, configure_logs
from telemetry.outbox import Outbox
from uplink import CloudAddress, FileSource, Reading, address_of, shared_channel, upload_logs

if TYPE_CHECKING:
    from agent.network.agent_network import AgentNetwork

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_STUCK: Final = 3
NETWORK: Final = (
    *(f"network-{name}" for name in ("status", "scan", "join", "forget", "explain")), "provision",
)  # fmt: skip
"""Commands of agent.network.agent_network."""
STOP_LIMIT: Final = 150.0  # seconds for an orderly end; a child may take 130 of them
LOAD_LIMIT: Final = 10.0
"""Seconds that a request for the status waits for the records of the programs, which are loaded after the start."""
CREDENTIALS_LIMIT: Final = 300.0  # seconds until a release on trial must have read the credentials

_log = structlog.get_logger("agent")


@dataclass(frozen=True, slots=True)
class Options:
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


def main(options: Options) -> int:
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


async def _run(options: Options, layout: Layout, logs: Logs, systemd: bool) -> int:
    worker = Worker("files of the agent")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(worker.opened())
        nursery = await stack.enter_async_context(trio.open_nursery())
        await nursery.start(_stop_on_signal, nursery.cancel_scope)
        _log.info("starting", version=version(), pid=os.getpid(), root=str(layout.root))
        manager = ServiceManager.from_environment()
        watchdog = Watchdog(manager)
        nursery.start_soon(watchdog.run)
        stack.push_async_callback(_say_stopping, manager)
        # A device may wait for its credentials for months: systemd must not end an agent that is not "ready" by then.
        await manager.send(READY="1", STATUS=f"machine-agent {version()}: waits for credentials in {options.config}")
        settings = SettingsState(options.defaults, layout.state / "settings.json", worker.run)
        await settings.load()
        network = _network(layout, settings, options.config, worker) if systemd else None
        if network is not None:
            nursery.start_soon(network.run)
        reading, cloud = None, None
        limit = await worker.run(partial(_credentials_limit, layout))
        with trio.move_on_after(limit):
            reading, cloud = await _credentials_while_served(options.config, layout, network)
        if reading is None or cloud is None:
            _log.error("this release is on trial and cannot use the credentials: it ends", limit=limit)
            nursery.cancel_scope.cancel()
            return EXIT_FAILED
        await manager.send(STATUS=f"machine-agent {version()}")
        server = await worker.run(
            partial(
                ManagedServer, layout, options.config.absolute(), worker,
                systemd=systemd, wait=options.wait, fast=options.fast_start,
            )
        )  # fmt: skip
        address = await stack.enter_async_context(shared_channel(address_of(cloud, options.config.parent)))
        agent = Agent(
            options,
            layout,
            logs,
            worker,
            cloud,
            address,
            server,
            watchdog,
            settings,
            network,
            end=nursery.cancel_scope.cancel if systemd else None,
        )
        nursery.start_soon(_end_with_new_credentials, options.config, reading, nursery.cancel_scope)
        await agent.run()
    _log.info("stopped")
    return EXIT_OK


def _refresh(config: Path, defaults: Path) -> None:
    from agent.install.refresh import refresh_files  # after an update only

    refresh_files(config, defaults)


def _network(layout: Layout, settings: SettingsState, credentials: Path, worker: Worker) -> AgentNetwork:
    from agent.network.agent_network import AgentNetwork  # 8 MiB, which only an installed agent needs

    return AgentNetwork(layout, settings, credentials, worker)


class Agent:
    """The parts of the agent, connected with each other."""

    def __init__(
        self,
        options: Options,
        layout: Layout,
        logs: Logs,
        worker: Worker,
        credentials: Cloud,
        address: CloudAddress,
        server: ManagedServer,
        watchdog: Watchdog,
        settings: SettingsState,
        network: AgentNetwork | None,
        *,
        end: Callable[[], None] | None,
    ) -> None:
        self._options, self._layout, self._logs, self._worker = options, layout, logs, worker
        self._credentials, self._address = credentials, address
        self._server, self._watchdog = server, watchdog
        self._started = trio.current_time()
        self.settings, self.network = settings, network
        self.fetcher = Fetcher(address, host_facts(), self._versions, self._deliver)
        self.updates = Updates(
            layout, address, server.supervisor, server.maintenance, worker,
            offline=lambda: self.fetcher.offline,
            end=end,
            refresh=partial(_refresh, options.config.absolute(), options.defaults.absolute()),
            speed=_clock_speed(),
        )  # fmt: skip
        self.system = SystemConfigurator(
            layout, self.settings, server.maintenance, partial(upload_logs, address=address), enabled=end is not None
        )
        self._reporter = Reporter(address, self.report, network.learned_key if network is not None else None)
        self._updating = UpdateCommands(self.updates, self.fetcher)

    async def run(self) -> None:
        """Run all parts until cancelled. No part waits for another one that talks to the network."""
        if self.network is not None:
            self.network.use(self._credentials)
        sink = OutboxSink(Outbox(self._layout.queue / "agent", self._worker.run))
        self._logs.add(sink)
        with self._watchdog.task("settings of machine-server", LONGEST_STEP) as progress:
            async with self._address.channel() as channel, trio.open_nursery() as nursery:
                await nursery.start(self._logs.run)
                await nursery.start(sink.run)
                await nursery.start(serve, self._layout.console, self._commands())
                nursery.start_soon(self._server.run, self.settings, self.fetcher.asked, progress, self.updates)
                nursery.start_soon(upload_logs, sink, self._address)
                nursery.start_soon(self._follow_settings)
                nursery.start_soon(self.fetcher.run)
                nursery.start_soon(self.system.run)
                for changes in self._changes():
                    nursery.start_soon(self._reporter.follow, changes)
                client = ApiClient(channel)
                nursery.start_soon(self._reporter.run, client, self.fetcher.asked)
                nursery.start_soon(follow_restarts, client, self._address, self._restart_server)
                nursery.start_soon(follow_requests, client, self._address, self._updating.carry_out)

    def _changes(self) -> Iterator[AsyncGenerator[object, None]]:
        """Return generators that yield when the report may have changed."""
        yield self.settings.changes()
        yield self._server.supervisor.changes()
        yield self._server.changes()
        yield self.system.changes()
        if self.network is not None:
            yield self.network.changes()
        yield from self.updates.changes()

    def report(self) -> Report:
        """Return the state of everything, for the cloud and for people."""
        own = program_report(
            self.updates.record(AGENT),
            running=True,
            since=time.time() - self._uptime,
            serving=True,
            waiting_for=self.updates.waiting(AGENT),
            kept=self.updates.kept(AGENT),
        )
        own = msgspec.structs.replace(own, version=version())
        return Report(
            time=time.time(),
            agent=own,
            server=self._server.report(),
            offline=self.fetcher.offline,
            disabled=self.settings.current.advanced_settings.disable_machine_server,
            problems=(
                *self._server.problems,
                *self.updates.problems,
                *self.system.problems,
                *(self.network.problems if self.network is not None else network_problems(self.settings.current)),
                *problems_of(self.settings.problems),
            ),
            system=self.system.report(),
            network=self.network.report() if self.network is not None else None,
        )

    @property
    def _uptime(self) -> float:
        return trio.current_time() - self._started

    def _versions(self) -> Versions:
        server = self._server
        return Versions(
            agent_running=version(),
            agent_installed=self.updates.installed(AGENT) or version(),
            server_running=server.installed if server.uptime is not None else "",
            server_installed=server.installed,
            agent_uptime=self._uptime,
            server_uptime=server.uptime,
        )

    async def _deliver(self, fetched: Fetched) -> None:
        self.updates.answered(fetched)
        try:
            changed = await self.settings.apply(fetched.settings)
        except OSError as error:
            _log.error("the settings cannot be stored for the next start", error=error.strerror)
            return
        if changed:
            _log.info("the settings have changed", problems=len(self.settings.problems))

    async def _follow_settings(self) -> None:
        reported: tuple[Any, ...] = ()
        async for settings in self.settings.changes():
            self.updates.settings(
                settings.version_control,
                allow_http=self.settings.allow_http,
                trust_first_root=self.settings.trust_first_root,
            )
            apply_to_logs(self._logs, settings, self._credentials, debug=self._options.debug)
            for problem in self.settings.problems:
                if problem not in reported:
                    _log.warning(
                        "a setting is not valid; its default applies", problem=problem.message, remedy=problem.remedy
                    )
            reported = self.settings.problems

    async def _status(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        with trio.move_on_after(LOAD_LIMIT):
            await self.updates.loaded.wait()
        yield msgspec.to_builtins(self.report())

    async def _restart_server(self) -> None:
        await self._server.restart(reason=REASON)

    def _commands(self) -> Mapping[str, Command]:
        updating = self._updating
        return {
            "status": self._status,
            "check": self._check_now,
            "restart": self._restart,
            "update": updating.update,
            "rollback": updating.rollback,
            "hold": updating.hold,
            **LeaseCommands(self._server.leases, self.updates).commands(),
            **(self.network.commands() if self.network is not None else dict.fromkeys(NETWORK, _no_network)),
        }

    async def _restart(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        await self._server.restart(reason="a person requested it on this computer")
        yield {"restarted": True}

    async def _check_now(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        self.fetcher.hurry()
        yield {"requested": True}


def network_problems(settings: Settings) -> tuple[Problem, ...]:
    """Return a problem for each section of the network that is set although this agent does not apply it."""
    ignored = {
        "network_configuration": settings.network_configuration != NetworkConfiguration(),
        "additional_networks": bool(settings.additional_networks),
    }
    remedy = "only an agent that is installed as a service applies it: machine-agent --install"
    return tuple(
        Problem(f"agent.{name}", "is ignored: this agent does not manage the network", remedy)
        for name, is_set in ignored.items()
        if is_set
    )


def _no_network(arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    raise MachineError(
        "this agent does not manage the network", kind=ErrorKind.UNSUPPORTED,
        remedy="only an installed agent does: machine-agent --install",
    )  # fmt: skip


def _credentials_limit(layout: Layout) -> float:
    """Return how long to wait for credentials, in seconds. Blocks.

    The release before one on trial had credentials. If this one cannot use them, nothing would ever end its trial,
    because it judges only itself: it must end, so that the launcher counts its starts.
    """
    try:
        launch = read_launch(layout, AGENT)
    except OSError:
        return math.inf
    on_trial = launch.on_trial and launch.run is not None and launch.run == os.environ.get(RELEASE)
    return CREDENTIALS_LIMIT / _clock_speed() if on_trial else math.inf


async def _credentials_while_served(path: Path, layout: Layout, network: AgentNetwork | None) -> tuple[Reading, Cloud]:
    """Wait for credentials, and answer requests about the network meanwhile."""
    if network is None:
        return await _credentials(path)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, layout.console, network.commands())
        result = await _credentials(path)
        nursery.cancel_scope.cancel()
    return result


async def _credentials(path: Path) -> tuple[Reading, Cloud]:
    """Wait until the credentials file can be used. Each problem is logged once."""
    async with FileSource(path).readings() as readings:
        async for reading in readings:
            cloud, problem = _cloud_of(reading)
            if cloud is not None:
                return reading, cloud
            _log.warning(
                "the agent waits for credentials", file=str(path), problem=problem,
                remedy="copy them from the machine's page in the cloud",
            )  # fmt: skip
    raise MachineError(f"changes of {path} cannot be watched", remedy="write the credentials and start the agent again")


def _cloud_of(reading: Reading) -> tuple[Cloud | None, str]:
    if reading.data is None:
        return None, str(reading.problem)
    decoded = decode_document(reading.data)
    if decoded.document is None:
        return None, str(decoded.problems[0])
    cloud = decoded.document.cloud
    if cloud is None or not cloud.app_address:
        return None, "it has no `cloud.app_address`"
    return cloud, ""


async def _end_with_new_credentials(path: Path, used: Reading, scope: trio.CancelScope) -> None:
    """End the agent when its credentials change, so that it starts again with the new ones."""
    async with FileSource(path).readings() as readings:
        async for reading in readings:
            cloud, problem = _cloud_of(reading)
            if cloud is None:
                _log.warning("the credentials cannot be used; the former ones stay in use", problem=problem)
            elif reading.data != used.data:
                _log.info("the credentials have changed: the agent starts again")
                scope.cancel()


async def _say_stopping(manager: ServiceManager) -> None:
    with trio.move_on_after(1, shield=True):
        await manager.send(STOPPING="1")


async def _stop_on_signal(scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        early = held_signal()
        number = early if early is not None else await anext(signals)
        _log.info("stopping", reason=f"received {signal.Signals(number).name}")
        limit_stop(STOP_LIMIT)
        scope.cancel()


def limit_stop(seconds: float) -> None:
    """End this process with EXIT_STUCK, also if a task or a thread hangs, unless it has ended after `seconds`."""

    def end(number: int, frame: object) -> None:
        sys.stderr.write(f"machine-agent did not stop within {seconds:g} s\n")
        os._exit(EXIT_STUCK)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _clock_speed() -> float:
    """Return how much faster the times of updates pass, for tests: only root can set it in the unit of the agent."""
    try:
        speed = max(1.0, float(os.environ.get(SPEED, "1")))
    except ValueError:
        return 1.0
    if speed > 1.0:
        _log.warning("the times of updates pass faster, for tests only", times=speed, variable=SPEED)
    return speed
