"""The RPC port of a machine: listening, authorization, services and pages."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio
from grpclib.const import Handler

from engine import BASES, Options
from engine.calls import REQUESTS_LIMIT, Dispatch
from engine.planning import RPC, SESSIONS
from engine.views import MachineState
from nursery_graph import Node, Restart
from rpc import Limits, ServerCore
from rpc.access import Origins
from rpc.api import SERIES, ApiRouter, CallTarget
from rpc.network import connections, names_of, only_loopback, open_listeners
from rpc.server import StandardServices, http_and_json, load_services, serve
from runtime.server.machine import Machine
from runtime.server.port.gate import GUARDED, Gate
from runtime.server.port.signalling import PREFIX, LocalSignalling
from runtime.server.port.statistics import series_handler
from schema.document import DEFAULT_BIND_ADDRESS, MANAGED_BIND_ADDRESS, MachineDocument, Network
from support import ChangeSignal, Worker

ROBOT_SERVICE: Final = "viam.robot.v1.RobotService"
STREAM_SERVICE: Final = "proto.stream.v1.StreamService"
SERVICES: Final = {
    ROBOT_SERVICE: "runtime.server.robot.service:RobotService",
    STREAM_SERVICE: "runtime.parts.video.service:StreamService",
}
REQUESTS_LIMIT_VARIABLE: Final = "MACHINE_RESOURCE_REQUESTS_LIMIT"

if TYPE_CHECKING:
    from rpc.network import CertificateContext, InMemoryTls

ASGIApp = Callable[[Any, Any, Any], Awaitable[None]]


class LazyApp:
    """An ASGI application that is loaded with its first request, without holding up the event loop.

    `load` imports its modules and compiles its templates, in a thread, and returns the function that creates the
    application.
    """

    def __init__(self, load: Callable[[], Callable[[], ASGIApp]]) -> None:
        self._load = load
        self._loading = trio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request (ASGI 3)."""
        await (self._app or await self._loaded())(scope, receive, send)

    async def _loaded(self) -> ASGIApp:
        async with self._loading:
            if self._app is None:
                worker = Worker("import of pages")
                async with worker.opened():
                    make = await worker.run(self._load)
                self._app = make()
            return self._app


class MachineServices:
    """The APIs of this program and those that only modules define."""

    def __init__(
        self,
        inner: ApiRouter,
        gate: Gate,
        signalling: Callable[[str], Handler],
        *,
        machine: Machine,
        target: CallTarget,
    ) -> None:
        self._inner = inner
        self._signalling = signalling
        self._gate = gate
        self._machine = machine
        self._target = target

    def get(self, path: str, /) -> Handler | None:
        """Return the handler of a path, or None; see Router."""
        if path == SERIES:
            return series_handler(self._machine.history.series)
        if path.startswith(PREFIX):
            return self._signalling(path)
        handler = self._inner.get(path) or self._foreign(path)
        return self._gate.for_owners(path, handler) if path in GUARDED and handler is not None else handler

    def names(self) -> list[str]:
        """Return the full names of the services."""
        modules = self._machine.parts.modules
        return [*self._inner.service_names(), *(modules.foreign.names() if modules is not None else ())]

    def pools(self) -> Sequence[Any]:
        """Return the descriptors of the APIs of modules."""
        modules = self._machine.parts.modules
        return modules.foreign.pools() if modules is not None else ()

    def load(self, name: str) -> None:
        """Load the service `name`, or all services if `name` is a message whose service is unknown."""
        load_services(self._inner.service_names(), self._inner.load, name)

    def _foreign(self, path: str) -> Handler | None:
        modules = self._machine.parts.modules
        return modules.foreign.handler(path, self._target) if modules is not None else None


def standard_services(
    inner: ApiRouter, gate: Gate, signalling: Callable[[str], Handler], *, machine: Machine, target: CallTarget
) -> StandardServices:
    """Return the services on the port of a machine."""
    services = MachineServices(inner, gate, signalling, machine=machine, target=target)

    async def listen(notify: Callable[[], None]) -> None:
        async def follow_graph() -> None:
            async for _ in machine.graph.changes():  # modules add services
                notify()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow_graph)
            for event in (machine.lifecycle.running, machine.lifecycle.stopping):
                await event.wait()
                notify()

    return StandardServices(
        services,
        lambda: gate.authenticator,
        names=services.names,
        load=services.load,
        pools=services.pools,
        serves=lambda: machine.lifecycle.state is MachineState.RUNNING,
        listen=listen,
    )


class Serving:
    """State shared by all listeners of a machine; `node` returns the node that listens."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.gate = Gate(machine.options, machine.endpoint)
        self.changed = ChangeSignal()  # the keys or origins changed
        self.bound = trio.Event()  # the port has been opened at least once
        self._network = machine.configured.document.network
        self.dispatch = Dispatch(machine.roster, machine.traffic, requests_limit=requests_limit())
        self.dispatch.services[ROBOT_SERVICE] = self._robot_service
        self.dispatch.services[STREAM_SERVICE] = self._stream_service
        target = machine.traffic.calls.observed(machine.roster, self.dispatch)
        inner = ApiRouter(target, bases=BASES, services=SERVICES)
        self.router = standard_services(inner, self.gate, self._signalled, machine=machine, target=target)
        self._signalling = LocalSignalling(self.router, self.gate, machine.parts.present)

    def node(self, document: MachineDocument) -> Node:
        """Return the node that listens as configured; equal versions mean the same address and files."""
        network, options, cloud_tls = document.network, self.machine.options, self._cloud_tls()
        address = bind_address(document, options, cloud_tls)
        return Node(
            RPC,
            Listening(self, network, address, cloud_tls),
            requires={SESSIONS},
            version=_version(network, options, address, cloud_tls),
            start_timeout=30.0,
            stop_timeout=20.0,
            restart=Restart(kind="permanent", intensity=1_000_000, first_delay=0.2, max_delay=5.0),
        )

    def follow(self, document: MachineDocument) -> None:
        """Apply the keys, session window and tunnel ports of `document`."""
        self.gate.configure(self.gate.credentials(document))
        self.gate.operators = frozenset() if document.auth.operator_shells else frozenset(document.auth.operators)
        self.machine.traffic.sessions.window = document.network.sessions.heartbeat_window
        self.machine.tunnels.configure(document.network.traffic_tunnel_endpoints)
        self._network = document.network
        self.changed.announce()

    def origins(self, *, loopback: bool) -> Origins:
        """Return the origins of web pages that may make calls now."""
        own = () if loopback else (socket.gethostname(), self._network.fqdn)
        return Origins(
            keys=self.gate.enabled,
            loopback=loopback,
            names=tuple(name for name in own if name),
            configured=self._network.allowed_origins,
            option="network.allowed_origins",
        )

    def exposure(self, *, loopback: bool) -> dict[str, Any]:
        """Return a description of what is open to which clients, for the log."""
        keys = self.gate.keys
        clients = "all programs on this computer" if loopback else "all clients that reach this port"
        pages = ", ".join(self._network.allowed_origins)
        open_shell = self.machine.options.allow_open_shell
        shells_without_keys = "open to all (-allow-open-shell)" if open_shell else "refused without keys"
        any_site = "pages of any site that have a token"
        return {
            "tls": self.machine.endpoint.secure,
            "keys": str(keys) if keys else f"none: {clients} may control the machine; configure auth.handlers",
            "shell": "with a key" if keys else shells_without_keys,
            "browsers": f"its own pages{f' and {pages}' if pages else ''}" if pages or not keys else any_site,
        }

    def _cloud_tls(self) -> InMemoryTls | None:
        """Return the certificate from the cloud, if the machine may have one."""
        link = self.machine.cloud
        return link.certificate.tls if link is not None and link.certificate is not None else None

    def _signalled(self, path: str) -> Handler:
        return self._signalling.handler(path)

    def _robot_service(self, call: Any, operation: Any) -> object:
        from runtime.server.robot.service import RobotService

        return RobotService(self.machine, call, operation, introduce=self.gate.introduce)

    def _stream_service(self, call: Any, operation: Any) -> object:
        from runtime.parts.video.service import StreamService

        return StreamService(self.machine.roster, call)

    def pages(self, *, loopback: bool) -> ASGIApp:
        """Return the web pages with access control; they are loaded with the first request."""

        def load() -> Callable[[], ASGIApp]:
            from rpc.access import Guard
            from runtime.parts.web.pages import LOGIN_TEXTS, PUBLIC
            from runtime.parts.web.render import compile_pages
            from runtime.server.pages.app import app

            compile_pages()
            origins, authenticator = partial(self.origins, loopback=loopback), self.gate.authenticator
            return lambda: Guard(app(self.machine), authenticator, origins=origins, public=PUBLIC, texts=LOGIN_TEXTS)

        return LazyApp(load)


class Listening:
    """Opens and serves the port. Instances are the run function of the port's node."""

    def __init__(self, serving: Serving, network: Network, address: str, cloud_tls: InMemoryTls | None) -> None:
        self._serving = serving
        self._network = network
        self._address = address
        self._cloud_tls = cloud_tls

    async def __call__(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[tuple[str, ...]]) -> None:
        """Listen until cancelled."""
        serving, machine = self._serving, self._serving.machine
        tls = server_tls(self._network, machine.options, self._cloud_tls)
        listeners = await open_listeners(self._address, setting="network.bind_address")
        serving.bound.set()
        loopback = only_loopback(listeners)
        gate = serving.gate
        core = ServerCore(
            serving.router,
            authorize=gate.authorize,
            keyed=lambda: gate.enabled,
            limits=Limits(max_connections=connections(Limits().max_connections)),
            origins=partial(serving.origins, loopback=loopback),
            statistics=machine.traffic.statistics,
            offload=serving.dispatch.large.run,
        )
        core.gateway = partial(http_and_json, core, serving.router.names)
        addresses = tuple(names_of(listeners))
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(_serve, listeners, core, serving.pages(loopback=loopback), tls)
                self._publish(addresses, tls)
                exposure = serving.exposure(loopback=loopback)
                log = machine.log.info if loopback or serving.gate.enabled else machine.log.warning
                log("listening on", addresses=list(addresses), open=_page(addresses, tls, loopback), **exposure)
                task_status.started(addresses)
                nursery.start_soon(self._follow, exposure, loopback)
                if tls is not None and tls is not self._cloud_tls:
                    from rpc.network import ServerTls
                    from runtime.server.port.renewal import renew

                    assert isinstance(tls, ServerTls)
                    nursery.start_soon(renew, tls, machine.log)
        finally:
            self._publish((), None)

    def _publish(self, addresses: tuple[str, ...], tls: CertificateContext | None) -> None:
        machine = self._serving.machine
        try:
            machine.endpoint.publish(addresses, tls)
        except OSError as error:
            machine.log.warning("MACHINE_ADDRESS_FILE cannot be written", reason=error.strerror)

    async def _follow(self, logged: dict[str, Any], loopback: bool) -> None:
        """Log when a new configuration changes the exposure."""
        serving, log = self._serving, self._serving.machine.log
        while True:
            await serving.changed.next.wait()
            exposure = serving.exposure(loopback=loopback)
            if exposure != logged:
                logged = exposure
                (log.info if loopback or serving.gate.enabled else log.warning)("access changed", **exposure)


async def _serve(
    listeners: Any, core: ServerCore, app: ASGIApp, tls: CertificateContext | None, *, task_status: trio.TaskStatus[Any]
) -> None:
    await serve(listeners, core, app=app, tls=tls, task_status=task_status)


def server_tls(network: Network, options: Options, cloud_tls: InMemoryTls | None = None) -> CertificateContext | None:
    """Return the certificate from configured files, else from the cloud (now or later); None without TLS.

    Raises TlsError.
    """
    if options.no_tls or network.no_tls:
        return None
    if not network.tls_cert_file:
        return cloud_tls
    from rpc.network import ServerTls

    return ServerTls(Path(network.tls_cert_file), Path(network.tls_key_file))


def bind_address(document: MachineDocument, options: Options, cloud_tls: InMemoryTls | None) -> str:
    """Return the address to listen on: the configured one, or the default.

    The default is all interfaces if there are keys for clients and the cloud's certificate is in use, else loopback.
    """
    network = document.network
    has_certificate = cloud_tls is not None and cloud_tls.context is not None and not network.tls_cert_file
    managed = has_certificate and bool(document.auth.handlers) and not (options.no_tls or network.no_tls)
    return network.bind_address or (MANAGED_BIND_ADDRESS if managed else DEFAULT_BIND_ADDRESS)


def _page(addresses: tuple[str, ...], tls: CertificateContext | None, loopback: bool) -> str:
    """Return the URL for a browser; http on this computer if allowed, because browsers do not trust the cloud's CA."""
    port = addresses[0].rpartition(":")[2]
    secure = tls is not None and tls.context is not None and not (loopback and tls.plain_locally)
    return f"{'https' if secure else 'http'}://{'localhost' if loopback else socket.gethostname()}:{port}"


def requests_limit() -> int:
    """Return the limit of calls in progress per resource: from the environment if valid, else REQUESTS_LIMIT."""
    text = os.environ.get(REQUESTS_LIMIT_VARIABLE, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else REQUESTS_LIMIT


def _version(network: Network, options: Options, address: str, cloud_tls: InMemoryTls | None) -> Hashable:
    """Return the settings whose change requires new sockets; the node itself follows new and renewed certificates."""
    secure = (cloud_tls is not None or bool(network.tls_cert_file)) and not (options.no_tls or network.no_tls)
    return (address, *((network.tls_cert_file, network.tls_key_file) if secure else ()))
