"""The parts of the agent that need credentials: connected with each other, and as nodes of the graph."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
import trio

from agent.commands import LeaseCommands, UpdateCommands
from agent.configure.configuration import SystemConfigurator
from agent.console.server import Command
from agent.control.fetch import Fetched, Fetcher, Versions
from agent.control.logs import apply_to_logs
from agent.control.report import AgentReport, ProblemReport, problems_of, program_report
from agent.control.reporter import Reporter
from agent.control.requests import follow_requests
from agent.control.restarts import REASON, follow_restarts
from agent.control.settings import SettingsState
from agent.layout import AGENT, Layout
from agent.parts import PartStates, at_once, part
from agent.server import UPDATES, ManagedServer
from agent.supervise.watchdog import Watchdog
from agent.system.host import host_facts
from agent.updates import Updates
from nursery_graph import Node
from rpc.api import ApiClient
from rpc.client import Channel
from schema import ErrorKind, MachineError
from schema.agent import NetworkConfiguration, Settings
from schema.document import Cloud
from support import Worker, version
from telemetry.logs import Logs, OutboxSink
from telemetry.outbox import Outbox
from uplink import CloudAddress, upload_logs

if TYPE_CHECKING:
    from agent.network.agent_network import AgentNetwork

NETWORK: Final = (
    *(f"network-{name}" for name in ("status", "scan", "join", "forget", "explain")), "provision",
)  # fmt: skip
"""Commands of agent.network.agent_network."""
LOAD_LIMIT: Final = 10.0
"""Seconds that a request for the status waits for the records of the programs, which are loaded after the start."""
CONNECTION, LOG = "connection", "log"
"""Names of parts that others depend on."""
MINOR: Final = frozenset({"network", "journal forwarding", "system configuration"})
"""Parts without which an agent is good enough to be kept; so are those of the system configuration."""

_log = structlog.get_logger("agent")


class Agent:
    """The parts of the agent, connected with each other. `channel` is that of `address`.

    `end` ends the agent for the reason that it is called with; with `installed`, that starts it again, as another
    release if it was updated. `refresh` blocks, and brings the installed files to the state of this release.
    """

    def __init__(
        self,
        layout: Layout,
        logs: Logs,
        worker: Worker,
        credentials: Cloud,
        address: CloudAddress,
        channel: Channel,
        server: ManagedServer,
        watchdog: Watchdog,
        settings: SettingsState,
        network: AgentNetwork | None,
        states: PartStates,
        *,
        installed: bool,
        end: Callable[[str], None],
        refresh: Callable[[], None],
        speed: float,
        debug: bool,
    ) -> None:
        self._layout, self._logs, self._worker = layout, logs, worker
        self._credentials, self._address, self._channel = credentials, address, channel
        self._server, self._watchdog, self._states = server, watchdog, states
        self._debug = debug
        self._sink: OutboxSink | None = None
        self._started = trio.current_time()
        self._logged: tuple[Any, ...] = ()  # problems of the settings
        self.settings, self.network = settings, network
        self.fetcher = Fetcher(address, host_facts(), self._versions, self._deliver)
        self.updates = Updates(
            layout, address, server.supervisor, server.maintenance, worker,
            offline=lambda: self.fetcher.offline,
            end=partial(end, "another release of machine-agent is started") if installed else None,
            refresh=refresh,
            speed=speed,
        )  # fmt: skip
        self.system = SystemConfigurator(
            layout, self.settings, server.maintenance, partial(upload_logs, address=address), enabled=installed
        )
        self._reporter = Reporter(address, self.report, network.learned_key if network is not None else None)
        self._updating = UpdateCommands(self.updates, self.fetcher)

    def nodes(self) -> list[Node]:
        """Return the parts. None of them waits for another one that talks to the network."""
        connected, client = {CONNECTION}, ApiClient(self._channel)
        return [
            part(CONNECTION, self._connect),
            part(LOG, self._write_log),
            part("log upload", at_once(self._upload_log), requires={LOG, *connected}),
            part("settings", at_once(self._follow_settings)),
            *self._server.nodes(self.settings, self.fetcher.asked, self._watchdog, self.updates),
            self.updates.node(),
            part("cloud settings", at_once(self.fetcher.run), requires=connected),
            part("report", at_once(partial(self._send_reports, client)), requires=connected),
            part(
                "cloud restarts",
                at_once(partial(follow_restarts, client, self._address, self._restart_server)),
                requires=connected,
            ),
            part(
                "cloud requests",
                at_once(partial(follow_requests, client, self._address, self._updating.carry_out)),
                requires=connected,
            ),
            *self.system.nodes(CONNECTION),
        ]

    async def _connect(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with self._channel:
            task_status.started()
            await trio.sleep_forever()

    async def _write_log(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Keep the messages of the agent for the cloud, in a queue that exists until the process ends."""
        if self._sink is None:
            self._sink = OutboxSink(Outbox(self._layout.queue / "agent", self._worker.run))
            self._logs.add(self._sink)
        async with trio.open_nursery() as nursery:
            await nursery.start(self._logs.run)
            await nursery.start(self._sink.run)
            task_status.started()

    async def _upload_log(self) -> None:
        assert self._sink is not None
        await upload_logs(self._sink, self._address)

    async def _send_reports(self, client: ApiClient) -> None:
        async with trio.open_nursery() as nursery:
            for changes in self._changes():
                nursery.start_soon(self._reporter.follow, changes)
            await self._reporter.run(client, self.fetcher.asked)

    def _changes(self) -> Iterator[AsyncGenerator[object, None]]:
        """Return generators that yield when the report may have changed."""
        yield self.settings.changes()
        yield self._server.supervisor.changes()
        yield self._server.changes()
        yield self.system.changes()
        yield self._states.changes()
        if self.network is not None:
            yield self.network.changes()
        yield from self.updates.changes()

    def report(self) -> AgentReport:
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
        return AgentReport(
            time=time.time(),
            agent=own,
            server=self._server.report(),
            offline=self.fetcher.offline,
            disabled=self.settings.current.advanced_settings.disable_machine_server,
            problems=(
                *self._states.problems,
                *self._server.problems,
                *self.updates.problems,
                *self.system.problems,
                *(self.network.problems if self.network is not None else network_problems(self.settings.current)),
                *problems_of(self.settings.problems),
            ),
            system=self.system.report(),
            network=self.network.report() if self.network is not None else None,
            parts=self._states.reports(),
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
        async for settings in self.settings.changes():
            self.updates.settings(
                settings.version_control,
                allow_http=self.settings.allow_http,
                trust_first_root=self.settings.trust_first_root,
            )
            apply_to_logs(self._logs, settings, self._credentials, debug=self._debug)
            for problem in self.settings.problems:
                if problem not in self._logged:
                    _log.warning(
                        "a setting is not valid; its default applies", problem=problem.message, remedy=problem.remedy
                    )
            self._logged = self.settings.problems

    async def _status(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        if not self._states.has_failed(UPDATES):
            with trio.move_on_after(LOAD_LIMIT):
                await self.updates.loaded.wait()
        yield msgspec.to_builtins(self.report())

    async def _restart_server(self) -> None:
        await self._server.restart(reason=REASON)

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of the control socket by name."""
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


def network_problems(settings: Settings) -> tuple[ProblemReport, ...]:
    """Return a problem for each section of the network that is set although this agent does not apply it."""
    ignored = {
        "network_configuration": settings.network_configuration != NetworkConfiguration(),
        "additional_networks": bool(settings.additional_networks),
    }
    remedy = "only an agent that is installed as a service applies it: machine-agent --install"
    return tuple(
        ProblemReport(f"agent.{name}", "is ignored: this agent does not manage the network", remedy)
        for name, is_set in ignored.items()
        if is_set
    )


def _no_network(arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    raise MachineError(
        "this agent does not manage the network", kind=ErrorKind.UNSUPPORTED,
        remedy="only an installed agent does: machine-agent --install",
    )  # fmt: skip
