"""RobotService: the machine-wide API for clients. Each call has its own object."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

import msgspec
import structlog
import trio

from engine import API_VERSION, PLATFORM
from engine.calls import (
    INTRODUCTION_KEY,
    WINDOW_KEY,
    Introduction,
    Operation,
    owner_of,
    requests_introduction,
    stop_all,
    window_of,
)
from engine.planning import FACTS_KEY, MACHINES_KEY, REMOTE, facts_of
from engine.views import MachineState
from rpc import Farewell, Identity
from rpc.api import APIS, CallInfo
from runtime.parts.metrics.received import MOST_SPANS, spans_of
from runtime.server.machine import Machine
from runtime.server.robot import messages as m
from runtime.server.robot.arguments import shown_arguments
from runtime.server.robot.frames import FrameRpcs
from runtime.server.robot.logs import forward
from schema import API, INTERNAL_NAMESPACE, ErrorKind, MachineError
from support import version
from telemetry.logs.logger_names import ROOT

SERVICE = "viam.robot.v1.RobotService"

_NOT_READY: Final = ("unhealthy", "unconfigured", "configuring")  # states with a reason that clients can show
_AT_ONCE: Final = 4  # log messages of others that are written before other tasks run


T = TypeVar("T")


def permuted(items: Iterable[T], number: int) -> list[T]:
    """Return the permutation of `items` that the digits of `number` in the factorial number system name."""
    pool, result = list(items), []
    while pool:
        number, index = divmod(number, len(pool))
        result.append(pool.pop(index))
    return result


class RobotService(FrameRpcs):
    """Implements the RPCs, one method each; none of them waits for a reconfiguration."""

    def __init__(
        self,
        machine: Machine,
        call: CallInfo,
        operation: Operation,
        *,
        introduce: Callable[[Identity], Introduction | None] = lambda caller: None,
    ) -> None:
        self._machine = machine
        self._call = call
        self._operation = operation
        if call.method == "resource_names":  # metadata is sent before the method is called
            call.reply_metadata[MACHINES_KEY] = json.dumps(self._machines())
        elif call.method == "get_machine_status":
            call.reply_metadata[FACTS_KEY] = json.dumps(facts_of(machine.status()))
        elif call.method == "get_version" and requests_introduction(call):
            call.reply_metadata[INTRODUCTION_KEY] = msgspec.json.encode(introduce(call.identity)).decode()

    def _machines(self) -> dict[str, str]:
        """Return the instance behind each chain of remotes, so that machines detect circles of remotes."""
        remotes = self._machine.parts.remotes
        return {"": self._machine.instance, **(remotes.machines() if remotes is not None else {})}

    # ---- resources and status

    async def resource_names(self) -> list[m.Name]:
        """Return the names of all ready resources, in an order that differs between connections.

        After it has connected again, the official Python SDK uses the new connection only if the list has changed.
        """
        number = self._call.peer.number if self._call.peer is not None else 0
        return [m.Name.of(name) for name in permuted(self._machine.roster.names(), number)]

    async def resource_rpc_subtypes(self) -> list[m.ResourceRPCSubtype]:
        """Return the APIs of the ready resources, with their protobuf services."""
        apis = sorted({name.api for name in self._machine.roster.names()})
        services = {api: APIS[api].service if api in APIS else self._foreign(api) for api in apis}
        return [m.ResourceRPCSubtype(m.Name.of_api(api), service) for api, service in services.items() if service]

    def _foreign(self, api: API) -> str | None:
        """Return the service of an API that is defined only in a module."""
        modules = self._machine.parts.modules
        return modules.foreign.service_of(api) if modules is not None else None

    async def get_machine_status(self) -> m.GetMachineStatusResponse:
        """Return the states of the machine and of all configured resources, remotes, modules and jobs."""
        status = self._machine.status()
        return m.GetMachineStatusResponse(
            resources=[
                m.ResourceStatus(
                    name=_name(resource.name),
                    state=m.ResourceState[resource.state.upper()],
                    last_updated=resource.since,
                    revision=resource.revision,
                    error=resource.reason if resource.state in _NOT_READY else "",
                )
                for resource in status.resources
            ]
            + [
                m.ResourceStatus(
                    name=m.Name(INTERNAL_NAMESPACE, "remote", "machine", node.name.rpartition("/")[2]),
                    state=m.ResourceState[node.state.upper()],
                    last_updated=node.since,
                    revision=status.config.revision,
                    error=node.reason if node.state in _NOT_READY else "",
                )
                for node in status.internal
                if node.name.startswith(REMOTE)
            ],
            config=m.ConfigStatus(status.config.revision, status.config.last_updated),
            state=m.MachineState.INITIALIZING if status.state is MachineState.INITIALIZING else m.MachineState.RUNNING,
            modules=[
                m.ModuleStatus(
                    module.name,
                    m.ModuleState[module.state.upper()],
                    module.since,
                    module.reason,
                    module.consecutive_failures,
                )
                for module in status.modules
            ],
            job_statuses=[m.JobStatus(job.name, list(job.succeeded), list(job.failed)) for job in status.jobs],
        )

    async def get_version(self) -> m.GetVersionResponse:
        """Return the platform, the version of this server and the version of the API."""
        return m.GetVersionResponse(PLATFORM, version(), API_VERSION)

    async def get_cloud_metadata(self) -> m.GetCloudMetadataResponse:
        """Return the ids of this machine in its cloud; FAILED_PRECONDITION if it has no cloud."""
        cloud = self._machine.configured.document.cloud
        if cloud is not None and cloud.id:
            return m.GetCloudMetadataResponse(cloud.primary_org_id, cloud.location_id, cloud.machine_id, cloud.id)
        if self._machine.cloud is not None:
            raise MachineError(
                "this machine has not read its configuration yet",
                kind=ErrorKind.UNAVAILABLE,
                remedy="try again in a moment",
            )
        raise MachineError(
            "this machine is not managed by a cloud",
            kind=ErrorKind.PRECONDITION,
            remedy="it runs from a local configuration file",
        )

    async def get_models_from_modules(self) -> list[m.ModuleModel]:
        """Return the models of all modules that have been ready."""
        modules = self._machine.parts.modules
        return [
            m.ModuleModel(link.module.name, str(model), str(api), link.module.type != "registry")
            for link in (modules.links.values() if modules is not None else ())
            for api, model in sorted(link.offers, key=str)
        ]

    async def list_tunnels(self) -> list[m.Tunnel]:
        """Return the ports of this computer that clients may connect to."""
        return [
            m.Tunnel(endpoint.port, timedelta(seconds=endpoint.connection_timeout))
            for endpoint in self._machine.tunnels.endpoints
        ]

    def tunnel(self, destination_port: int, data: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Relay bytes to and from a port of this computer until it disconnects; the end of `data` is sent as EOF."""
        return self._machine.tunnels.relay(destination_port, data)

    # ---- operations

    async def get_operations(self) -> list[m.Operation]:
        """Return all calls in progress except this one."""
        return [
            m.Operation(
                operation.id,
                operation.method,
                operation.started,
                shown_arguments(operation.arguments),
                operation.session or None,
            )
            for operation in self._machine.traffic.operations.running(excluding=self._operation)
        ]

    async def cancel_operation(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Cancel a call by its id; NOT_FOUND if it is not running."""
        self._other(id).cancel()

    async def block_for_operation(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Wait until a call has ended; NOT_FOUND if it is not running."""
        await self._other(id).wait()

    def _other(self, opid: str) -> Operation:
        operation = self._machine.traffic.operations.find(opid)
        if operation is self._operation:
            raise MachineError(
                f"{opid} is this call itself", kind=ErrorKind.INVALID, remedy="use the id of another operation"
            )
        return operation

    async def stop_all(self, extra: Sequence[m.StopExtraParameters] = ()) -> None:
        """Cancel every other call and stop every actuator."""
        parameters = {parameter.name.full: parameter.params for parameter in extra}
        traffic = self._machine.traffic
        await stop_all(
            self._machine.roster, traffic.operations, traffic.sessions, parameters, excluding=self._operation
        )

    # ---- sessions

    async def start_session(self, resume: str = "") -> m.StartSessionResponse:
        """Start a session, or resume a live one."""
        address = self._call.peer.addr() if self._call.peer is not None else None
        peer = ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address or "")
        window = window_of(self._call.metadata.get(WINDOW_KEY))
        session = self._machine.traffic.sessions.start(
            resume=resume, owner=owner_of(self._call), peer=peer, window=window
        )
        session.touch(self._farewell())
        return m.StartSessionResponse(session.id, timedelta(seconds=session.window))

    async def send_session_heartbeat(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Extend a session; INVALID_ARGUMENT "SESSION_EXPIRED" if it has ended."""
        self._machine.traffic.sessions.find(id, owner_of(self._call)).touch(self._farewell())

    def _farewell(self) -> Farewell | None:
        return self._call.peer.farewell if self._call.peer is not None else None

    async def get_sessions(self) -> list[m.Session]:
        """Return all live sessions."""
        return [
            m.Session(session.id, m.PeerConnectionInfo(remote_address=session.peer or None))
            for session in self._machine.traffic.sessions.status()
        ]

    # ---- other calls

    async def log(self, logs: Sequence[m.LogEntry]) -> None:
        """Put messages of a module into this machine's log."""
        sender = str(self._call.metadata.get("modname", ""))
        for start in range(0, len(logs), _AT_ONCE):
            forward(
                logs[start : start + _AT_ONCE],
                sender=sender,
                modules=self._machine.parts.modules,
                planned=self._machine.roster.planned,
            )
            await trio.lowlevel.checkpoint()

    async def send_traces(self, resource_spans: Sequence[Mapping[str, Any]]) -> None:
        """Record spans of a module or a client like this machine's own; drop them while tracing is off."""
        tracer = self._machine.traffic.calls.tracer
        if not tracer.enabled:
            return
        sender = str(self._call.metadata.get("modname", ""))
        dropped = 0
        for count, span in enumerate(spans_of(resource_spans, sender=sender, masker=self._machine.configured.masker)):
            if count >= MOST_SPANS or span is None:
                dropped += 1
            else:
                tracer.take(span)
            await trio.lowlevel.checkpoint()  # masking the secrets of one span may take milliseconds
        if dropped:
            log = structlog.get_logger(f"{ROOT}.telemetry")
            log.warning("spans were dropped", sender=sender or "a client", dropped=dropped, most=MOST_SPANS)

    async def upload_data_from_path(
        self,
        path: str,
        upload_metadata: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Reject the call: a client could name any path, and so read every file that the server can read."""
        raise MachineError(
            "UploadDataFromPath is not supported",
            kind=ErrorKind.UNSUPPORTED,
            remedy="add the file's folder to additional_sync_paths of the data manager, "
            "or send its contents with UploadBinaryDataToDatasets",
        )

    async def shutdown(self) -> None:
        """Stop the whole server in order; the reply is sent before it stops."""
        self._machine.lifecycle.request_stop("a client called Shutdown")

    async def restart_module(self, module_id: str | None = None, module_name: str | None = None) -> None:
        """Stop a module, after its resources, and start it again; NOT_FOUND if it is not configured."""
        id_or_name = module_id or module_name or ""
        modules = self._machine.parts.modules
        for link in modules.links.values() if modules is not None else ():
            if id_or_name and id_or_name in (link.module.module_id, link.module.name):
                self._machine.graph.restart(link.node, "a client requested a restart")
                return
        raise MachineError(f"no module {id_or_name!r} is configured", kind=ErrorKind.NOT_FOUND)


def _name(full: str) -> m.Name:
    api, _, short = full.partition("/")
    namespace, kind, subtype = api.split(":")
    return m.Name(namespace, kind, subtype, short)
