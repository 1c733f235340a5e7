"""Composition of machine-cloud: the nodes and their order of start and stop."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio

from cloud.blobs import Blobs
from cloud.blobs.choice import store_of
from cloud.commands.options import EXIT_FAILED, EXIT_OK, Options
from cloud.domain.machines.hosts import MachineHosts
from cloud.domain.organizations.first import FirstKey, first_start
from cloud.domain.permissions.authentication import CloudAuthenticator, open_signer
from cloud.domain.permissions.links import Links, open_secret
from cloud.domain.queries.query_process import QueryProcesses
from cloud.domain.upkeep.housekeeping import CHORES
from cloud.domain.upkeep.identity import bind
from cloud.domain.upkeep.sweep import sweep
from cloud.server import segment_nodes, training_nodes
from cloud.server import trigger_nodes as triggering
from cloud.server.failures import log_failures
from cloud.services.agents.agent_requests import end_waiting
from cloud.services.common.base import Cloud, UploadLimits
from cloud.services.fleet import runner
from cloud.services.organizations import invitation_mail
from cloud.services.releases import importing, renewal
from cloud.services.releases.sources import Sources
from cloud.services.reverse.calls import PART, MachineCalls
from cloud.services.rollouts import proceeding
from cloud.services.target import MESSAGES, UPLOADS, CloudRouter
from cloud.store.commands import follow_commands
from cloud.store.events import Events
from cloud.store.postgres import PostgresStore
from cloud.store.sql import Sql, Store
from cloud.store.sqlite import SqliteStore
from cloud.store.trash import DELAY
from cloud.values.limits import CALL, DOCUMENT_FORM
from cloud.values.times import now
from cloud.web.app import application
from cloud.web.common.site import compile_pages
from cloud.work.checks import Checks
from cloud.work.workroom import Workroom
from nursery_graph import Graph, Node, Restart, State
from rpc import MIB, Limits, ServerCore
from rpc.access import behind_proxies
from rpc.http import HttpLimits
from rpc.network import connections, names_of, only_loopback, open_listeners, raise_descriptors
from rpc.server import http_and_json, serve
from schema import ErrorKind, MachineError
from support import held_signal
from support.files import private
from telemetry.metrics import loop_passes
from uplink.releases import MAX_FILE, RELEASE_FILES_PATH

if TYPE_CHECKING:
    from cloud.domain.certificates.port import PortTls

STOP_LIMIT: Final = 30.0  # seconds for the whole shutdown
SWITCH: Final = 0.0001
"""Thread switch interval in seconds; Python's default is 0.005. A request waits up to this long whenever it moves to
another thread and after each call into the kernel or SQLite: some 40 times."""
COLLECTIONS: Final = (5_000, 4, 345_600)
"""Thresholds of the garbage collector. No other thread runs while it traverses objects. Young objects are traversed
while they are few, so that each step takes 2 to 3 ms (100,000 took up to 211 ms), and those that survive once more. All
objects are traversed once a day at most; with Python's defaults (700, 10, 10) that happens many times for each large
document."""
AGING: Final = 0.25
"""Seconds after which young objects count as old. Python collects when more objects were created than deleted, which
does not happen where objects replace older ones: with 5,000 machines, hundreds of thousands were young then, and took
300 to 700 ms in one step."""
HOUSEKEEPING: Final = 3600.0  # seconds between two runs of housekeeping
FOREVER: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=0.5, max_delay=10.0)


class App:
    """A machine-cloud process. `addresses` are those of its port while it listens."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.events = Events()
        self.graph = Graph(shutdown_timeout=STOP_LIMIT)
        self.addresses: tuple[str, ...] = ()
        self.first: FirstKey | None = None
        self.failure = ""  # the reason for a failed start
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud")

    @property
    def url(self) -> str:
        """Base URL of links for clients."""
        scheme = "https" if self.options.tls or self.options.tls_cert is not None else "http"
        return self.options.url or f"{scheme}://{self.addresses[0] if self.addresses else self.options.address}"

    def nodes(self) -> list[Node]:
        """Return the nodes of the graph, with their dependencies."""
        return [
            Node("database", self._database, restart=FOREVER),
            Node("files", self._files, requires={"database"}, restart=FOREVER),
            Node("certificate", self._certificate, requires={"database"}, restart=FOREVER),
            Node(
                "cloud",
                self._cloud,
                requires={"database", "files", "certificate", training_nodes.NAME},
                restart=FOREVER,
            ),
            Node("port", self._port, requires={"cloud"}, restart=FOREVER),
            Node("housekeeping", self._housekeeping, requires={"database", "files"}, restart=FOREVER),
            Node("releases", self._releases, requires={"cloud"}, restart=FOREVER),
            Node("fleet jobs", self._fleet_jobs, requires={"cloud"}, restart=FOREVER),
            Node("rollouts", self._rollouts, requires={"cloud"}, restart=FOREVER),
            Node("release imports", self._imports, requires={"cloud"}, restart=FOREVER),
            *segment_nodes.nodes(self.options.seal_after, self.events, FOREVER),
            *training_nodes.nodes(self.options, FOREVER),
            *triggering.nodes(self.options.ways, FOREVER),
            *invitation_mail.nodes(self.options.ways, FOREVER),
        ]

    async def _database(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Store]) -> None:
        async with self._store() as store:
            task_status.started(store)
            await trio.sleep_forever()

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[Store]:
        if self.options.postgres:
            async with PostgresStore(self.options.postgres, self.events).opened() as postgres:
                yield postgres
            return
        private_data(self.options.data)
        async with SqliteStore(self.options.database, self.events).opened() as sqlite, trio.open_nursery() as nursery:
            await nursery.start(follow_commands, self.options.database, self.events)
            yield sqlite
            nursery.cancel_scope.cancel()

    async def _files(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Blobs]) -> None:
        async with store_of(self.options.files) as blobs:
            for problem in await bind(deps["database"], blobs):
                self.log.error(problem.message, remedy=problem.remedy)
            task_status.started(blobs)
            await trio.sleep_forever()

    async def _certificate(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[PortTls | None]) -> None:
        """Provide the TLS contexts of the port; None for plain text."""
        options = self.options
        if options.tls_cert is not None and options.tls_key is not None:
            from cloud.domain.certificates.port import FromFiles

            files = FromFiles(options.tls_cert, options.tls_key)
            task_status.started(files)
            await files.run()
        elif options.tls:
            from cloud.domain.certificates.port import FromAuthority, port_names

            domain = options.machine_domain
            names = partial(port_names, options.address, options.url, options.tls_names, machine_domain=domain)
            certificates = FromAuthority(deps["database"], self.events, names)
            await certificates.look()
            self.log.info("clients must trust this cloud's authority", command="machine-cloud ca", path="/ca.pem")
            task_status.started(certificates)
            await certificates.run()
        else:
            task_status.started(None)
            await trio.sleep_forever()

    async def _cloud(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Cloud]) -> None:
        store: Store = deps["database"]
        first_key = await store.write(lambda sql: first_start(sql, self.options.organization, now()))
        self.first = first_key or self.first
        authenticator = CloudAuthenticator(await open_signer(store), store, self.events)
        links = Links(await store.write(open_secret), lambda: self.url)
        room, checks, queries = Workroom(), Checks(), QueryProcesses(self.options.data / "queries")
        async with room.opened(), checks.opened(), queries.opened(), trio.open_nursery() as nursery:
            await nursery.start(authenticator.run)
            options = self.options
            limits = UploadLimits(options.file_mib * MIB, options.message_mib * MIB, options.package_mib * MIB)
            shared = (store, self.events, authenticator, deps["files"], links)
            mails = options.ways.smtp is not None
            hosts = MachineHosts(options.machine_domain)
            task_status.started(
                Cloud(
                    *shared,
                    limits=limits,
                    mails=mails,
                    tls=deps["certificate"],
                    room=room,
                    checks=checks,
                    queries=queries,
                    hosts=hosts,
                    ice=options.ice,
                    replica_address=options.replica_address,
                    training=deps[training_nodes.NAME].abilities,
                )
            )

    async def _port(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[tuple[str, ...]]) -> None:
        cloud: Cloud = deps["cloud"]
        listeners = await open_listeners(self.options.address, setting="--listen")
        raise_descriptors()
        max_connections, proxies = connections(), self.options.proxies
        message = self.options.message_mib * MIB
        limits = Limits(
            max_connections=max_connections, max_message=min(CALL.value, message), max_buffered=message * 3 // 2
        )
        http = HttpLimits(
            max_per_address=max_connections,
            max_body=DOCUMENT_FORM.value,
            files_below=RELEASE_FILES_PATH,
            max_file=MAX_FILE,
        )
        router, authenticator = CloudRouter(cloud), cloud.authenticator
        calls = MachineCalls(cloud)
        core = ServerCore(
            router,
            route=calls.route,
            route_fields=(PART,),
            authorize=authenticator.authorize,
            keyed=lambda: authenticator.enabled,
            limits=limits,
            proxies=proxies,
            messages={**MESSAGES, **dict.fromkeys(UPLOADS, message)},
            offload=router.in_room,
        )
        core.gateway = lambda pages: calls.gateway(core, http_and_json(core, router.names, pages))
        addresses = tuple(names_of(listeners))
        loopback = only_loopback(listeners)
        pages = application(cloud, loopback=loopback, url=self.options.url, statistics=core.statistics)
        app = behind_proxies(proxies, pages)
        cloud.openings.closing = False
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(serve, listeners, core, app=app, tls=cloud.tls, limits=http))
                nursery.start_soon(end_waiting, cloud)
                nursery.start_soon(compile_pages)
                self.addresses = addresses
                self.log.info("listening on", addresses=list(addresses))
                task_status.started(addresses)
        finally:
            self.addresses = ()

    async def _releases(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        await renewal.run(deps["cloud"], task_status=task_status)

    async def _fleet_jobs(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        await runner.run(deps["cloud"], task_status=task_status)

    async def _rollouts(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        await proceeding.run(deps["cloud"], task_status=task_status)

    async def _imports(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        sources = Sources.of(self.options.releases or self.options.data / "releases")
        await importing.run(deps["cloud"], sources, task_status=task_status)

    async def _housekeeping(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        store: Store = deps["database"]
        task_status.started()
        while True:
            for what, chore in CHORES:
                count = 0
                while expired := await store.write(partial(_do, chore)):  # in parts, with other writes between
                    count += expired
                if count:
                    self.log.info("expired", what=what, count=count)
            await self._sweep(store, deps["files"])
            await trio.sleep(HOUSEKEEPING)

    async def _sweep(self, store: Store, blobs: Blobs) -> None:
        try:
            swept = await sweep(store, blobs, now())
        except MachineError as error:
            if error.kind is ErrorKind.PRECONDITION:
                self.log.error(f"unused files are not removed: {error.message}", remedy=error.remedy)
            else:  # the bucket is unavailable; the next run is soon enough
                self.log.warning(
                    "unused files could not be removed: they remain until a later sweep", reason=str(error)
                )
            return
        if swept.removed:
            self.log.info("removed unused files", count=swept.removed)
        if swept.noticed:
            self.log.info(
                f"some files have no database row: they will be removed in {DELAY.days} days", count=swept.noticed
            )
        if swept.held:
            self.log.error(
                f"the database uses only {swept.total - swept.held} of {swept.total} files in {blobs.where}: the "
                "others are not removed, because so many unused files are unlikely",
                count=swept.held,
                remedy="check that this is the newest database of this cloud, or restore a backup; to remove the files "
                "anyway: machine-cloud doctor --release-unnamed",
            )


def _do(chore: Callable[[Sql, datetime], int], sql: Sql) -> int:
    return chore(sql, now())


def private_data(folder: Path) -> None:
    """Create the data folder, or remove the permissions of group and others from an existing one.

    Raises MachineError if others can read the folder and it belongs to another user or holds other data: closing it
    could lock others out.
    """
    folder.mkdir(mode=private.FOLDER, parents=True, exist_ok=True)
    if not private.is_open(folder):
        return
    names = {path.name for path in folder.iterdir()}
    if not private.is_own(folder) or (names and not names & {"cloud.db", "files"}):
        raise MachineError(
            f"--data {folder} can be read by other users and is not used by this cloud alone",
            kind=ErrorKind.PRECONDITION,
            remedy=f"set --data to a separate folder, or remove the access of others: chmod 700 {folder}",
        )
    private.close(folder)


async def run(app: App) -> int:
    """Run until stopped; return the exit code."""
    loop_passes()
    async with trio.open_nursery() as nursery:
        await nursery.start(_signals, app)
        nursery.start_soon(_announce, app)
        nursery.start_soon(age_young_objects)
        nursery.start_soon(log_failures, app.graph)
        app.graph.apply(app.nodes())
        await app.graph.run()
        nursery.cancel_scope.cancel()
    if app.failure:
        sys.stderr.write(f"machine-cloud: {app.failure}\n")
        return EXIT_FAILED
    return EXIT_OK


async def _signals(app: App, *, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        if (early := held_signal()) is not None:
            app.graph.stop(f"received {signal.Signals(early).name}")
        async for number in signals:
            app.graph.stop(f"received {signal.Signals(number).name}")


async def _announce(app: App) -> None:
    """Print the first key and notify a waiting parent when the port is open; stop if a node fails before that."""
    async for snapshot in app.graph.changes():
        port = snapshot.nodes.get("port")  # absent if stopped before the port started
        if port is not None and port.state is State.READY:
            freeze_loaded_objects()
            break
        for node in snapshot.nodes.values():
            if node.state is State.UNHEALTHY:
                app.failure = node.reason.removeprefix("MachineError: ")
                app.graph.stop("the start failed")
                return
    if app.first is not None:
        print_first_key(app.first, app.addresses)
    if app.options.ready_fd is not None:
        os.write(app.options.ready_fd, "".join(f"{address}\n" for address in app.addresses).encode())
        os.close(app.options.ready_fd)


def freeze_loaded_objects() -> None:
    """Exempt all loaded objects from garbage collection. Otherwise a full collection, such as after an upload that
    creates many objects, takes 200 ms in one step."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)


async def age_young_objects() -> None:
    """Collect the garbage among young objects again and again, while they are few. Runs until cancelled."""
    while True:
        await trio.sleep(AGING)
        gc.collect(1)


def print_first_key(first: FirstKey, addresses: tuple[str, ...]) -> None:
    """Print the owner's key, which cannot be read again later."""
    sys.stdout.write(
        f"Created a new cloud. Keep this key, it is shown only once:\n"
        f"  organization  {first.organization}\n"
        f"  location      {first.location}\n"
        f"  key id        {first.id}\n"
        f"  key           {first.key}\n"
        f"  address       {addresses[0] if addresses else ''}\n"
    )
    sys.stdout.flush()


def main(options: Options) -> int:
    """Run machine-cloud until stopped; return the exit code."""
    sys.setswitchinterval(SWITCH)
    try:
        return trio.run(run, App(options))
    except MachineError as error:
        sys.stderr.write(f"machine-cloud: {error}\n")
        return EXIT_FAILED
