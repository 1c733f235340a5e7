"""The packages of one machine: nodes that download and install them, and queries for the rest of the machine."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio
from grpclib.exceptions import GRPCError, StreamTerminatedError

from nursery_graph import Node, Restart
from runtime.engine.part import PartContext
from runtime.engine.planning.node_names import INTERNAL, package_node
from runtime.engine.planning.refused import NO_RESTART
from runtime.engine.views.status import DownloadStatus
from runtime.programs import archive, install, store
from runtime.programs.command import data_folder, environment_of, machine_facts
from runtime.programs.configured import ConfiguredPackage, Key, configured_packages
from runtime.programs.store import Installed
from schema.document.machine import MachineDocument
from schema.document.modules import Module
from schema.document.packages import PackageSource
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from telemetry.logs.names import PACKAGES
from uplink.download import Headers, Part, Stopped, download

TIDY: Final = f"{INTERNAL}package-tidy"
AT_ONCE: Final = 2  # simultaneous downloads; more would only share the bandwidth
START_LIMIT: Final = 24 * 3600.0  # seconds; enough for a large package over a slow line; stalls are detected earlier
TOLD: Final = 10.0  # seconds between log messages about a download
SIGN_IN_LIMIT: Final = 15.0  # seconds
RESTART: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=1.0, max_delay=300.0)
TIDY_RESTART: Final = Restart(kind="permanent", intensity=1_000_000, max_delay=60.0)

_log = structlog.get_logger(PACKAGES)


class Packages:
    """The packages of one machine. A new version replaces the old one when it is installed completely."""

    def __init__(self, context: PartContext) -> None:
        self._graph = context.graph
        self._cloud = context.cloud
        self.downloads: dict[str, DownloadStatus] = {}  # on their way, by their contents
        self._environment = context.environment
        self._changed = context.changed
        self._root = store.root_of(context.environment)
        self._installed = store.records(self._root)
        self._wanted: dict[Key, ConfiguredPackage] = {}
        self._troubles: dict[Key, str] = {}
        self._busy: set[tuple[Key, str]] = set()
        self._worker = Worker("packages")
        self._lines = trio.CapacityLimiter(AT_ONCE)
        self._untidy = trio.Event()
        self._untidy.set()

    # ---- for the rest of the machine

    def in_force(self, kind: str, name: str, named: str) -> Installed | None:
        """Return the installed version of a package whose entry has the package id `named`; None if there is none."""
        found = self._installed.get((kind, name))
        return found if found is not None and found.named == named else None

    def module(self, module: Module) -> Module | None:
        """Return the entry of a registry module with the installed version, also while another one is downloaded.

        None if no version is installed.
        """
        found = self.in_force("module", module.name, module.module_id)
        if found is None:
            return None
        source = PackageSource(package=module.module_id, version=found.version, sha256=found.sha256)
        return _replaced(module, version=found.version, source=source)

    def trouble(self, kind: str, name: str) -> str:
        """Return why the configured version of a package could not be installed; empty if it has not failed."""
        return self._troubles.get((kind, name), "")

    def find(self, document: MachineDocument) -> Mapping[Key, str]:
        """Return the folders of the installed packages of a document, for its placeholders."""
        found: dict[Key, str] = {}
        for key, wanted in configured_packages(document).items():
            record = self.in_force(*key, wanted.package_id)
            if record is not None:
                found[key] = str(store.folder(self._root, key, record.sha256))
        return found

    # ---- for the graph

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return a node for each package of `document`, and one that removes packages that are no longer needed."""
        self._wanted = configured_packages(document)
        broken = any(entry.section in ("modules", "packages") for entry in document.broken)
        if not broken:  # else an entry that has become invalid would cause a deletion
            for key in self._installed.keys() - self._wanted.keys():
                del self._installed[key]
        for key in self._troubles.keys() - self._wanted.keys():
            del self._troubles[key]
        self._untidy.set()
        facts = machine_facts(document)
        data = data_folder(self._environment, document)
        nodes = [
            Node(
                package_node(*wanted.key),
                partial(self._live, wanted, facts, data),
                version=wanted.version,
                start_timeout=START_LIMIT,
                restart=NO_RESTART if wanted.source is not None and wanted.source.error else RESTART,
            )
            for wanted in self._wanted.values()
        ]
        return [*nodes, Node(TIDY, self._tidy, restart=TIDY_RESTART)]

    async def _live(
        self,
        wanted: ConfiguredPackage,
        facts: Mapping[str, str],
        data: Any,
        deps: Mapping[str, Any],
        /,
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        key, source = wanted.key, wanted.source or PackageSource()
        async with self._worker.opened():
            current = self.in_force(*key, wanted.package_id)
            if current is None or current.sha256 != source.sha256:
                try:
                    record = await self._obtain(wanted, source, facts, data)
                except MachineError as error:
                    self._failed(wanted, str(error), current)
                    raise
                self._installed[key] = record
                self._untidy.set()
            if self._troubles.pop(key, None) is not None or current != self._installed.get(key):
                self._changed()
        task_status.started()
        await trio.sleep_forever()

    def _failed(self, wanted: ConfiguredPackage, reason: str, current: Installed | None) -> None:
        """Record and log a failed installation, once for each reason."""
        if self._troubles.get(wanted.key) == reason:
            return
        self._troubles[wanted.key] = reason
        stays = {"in_force": current.version} if current is not None else {}
        _log.error("a package cannot be had", package=wanted.package_id, name=wanted.name, reason=reason, **stays)
        self._changed()

    async def _obtain(
        self, wanted: ConfiguredPackage, source: PackageSource, facts: Mapping[str, str], data: Any
    ) -> Installed:
        if source.error:
            raise MachineError(
                f"the cloud cannot provide {wanted.package_id}: {source.error}", kind=ErrorKind.PRECONDITION
            )
        if not source.sha256 or not source.url:
            raise MachineError(
                f"{wanted.path}: where {wanted.package_id} comes from is not known",
                kind=ErrorKind.PRECONDITION,
                remedy="modules of the registry and packages need a machine that is joined to a cloud",
            )
        key, busy = wanted.key, (wanted.key, source.sha256)
        self._busy.add(busy)
        left = trio.Event()
        try:
            folder = store.folder(self._root, key, source.sha256)
            if not await self._worker.run(folder.is_dir):
                async with self._lines:
                    await self._download(wanted, source)
                await self._worker.run(lambda: store.unpacked(self._root, key, source.sha256, left.is_set))
            if wanted.module is not None:
                program = await self._worker.run(lambda: archive.read_meta(folder, folder))
                environment = environment_of(
                    wanted.module, program, "", data / wanted.name, inherited=self._environment, facts=facts
                )
                await install.first_run(wanted.module, program, environment)
            record = Installed(wanted.package_id, source.version, source.sha256)
            await self._worker.run(lambda: store.note(self._root, key, record))
        except OSError as error:
            raise MachineError(
                f"{self._root} cannot be used: {error.strerror}",
                kind=ErrorKind.PRECONDITION,
                remedy="let this user write there, and see that the disk has room",
            ) from error
        except Stopped:
            raise MachineError("it was stopped", kind=ErrorKind.CANCELLED) from None
        finally:
            left.set()
            self._busy.discard(busy)
        _log.info("a package is there", package=wanted.package_id, version=source.version, folder=str(folder))
        return record

    async def _download(self, wanted: ConfiguredPackage, source: PackageSource) -> None:
        url, headers, tls = await self._where(source)
        told = trio.current_time()

        def progress(there: int) -> None:
            nonlocal told
            self.downloads[source.sha256] = DownloadStatus(wanted.package_id, source.version, there, source.size)
            if trio.current_time() - told >= TOLD:
                told = trio.current_time()
                share = f"{100 * there // source.size} %" if source.size else f"{there} bytes"
                _log.info(
                    "a package is being downloaded", package=wanted.package_id, version=source.version, so_far=share
                )

        progress(0)
        try:
            await download(
                url,
                headers,
                Part(self._root, source.sha256),
                self._worker,
                size=source.size,
                sha256=source.sha256,
                progress=progress,
                tls=tls,
            )
        finally:
            self.downloads.pop(source.sha256, None)

    async def _where(self, source: PackageSource) -> tuple[str, Headers, ssl.SSLContext | None]:
        """Return URL, headers and TLS context of a download. The machine's token is sent only to its cloud."""
        if "://" in source.url:
            return source.url, (), None
        if self._cloud is None:
            raise MachineError(
                f"{source.url} is at a cloud, and this machine has joined none", kind=ErrorKind.PRECONDITION
            )
        from uplink.dial import HTTP1, token_headers

        address = self._cloud.address
        try:
            with trio.fail_after(SIGN_IN_LIMIT):
                return f"{address.url}{source.url}", await token_headers(address), address.tls(HTTP1)
        except trio.TooSlowError:
            reason = f"no answer within {SIGN_IN_LIMIT:g} s"
        except (GRPCError, StreamTerminatedError, OSError) as error:
            reason = getattr(error, "message", "") or str(error) or repr(error)
        raise MachineError(
            f"the cloud cannot be asked for a package: {reason}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="it is tried again",
        )

    async def _tidy(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        """Remove packages that are no longer needed, once the graph has settled and nothing uses them."""
        task_status.started()
        while True:
            await self._untidy.wait()
            self._untidy = trio.Event()
            await self._graph.settled()
            wanted = {(key, one.source.sha256) for key, one in self._wanted.items() if one.source is not None}
            there = {(key, record.sha256) for key, record in self._installed.items()}
            kept, parts = there | wanted | self._busy, {sha256 for _, sha256 in wanted - there}
            async with self._worker.opened():
                gone = await self._worker.run(lambda kept=kept, parts=parts: store.tidy(self._root, kept, parts))  # type: ignore[misc]
            for name in gone:
                _log.info("a package that is needed no more was removed", folder=name)


def _replaced(module: Module, **values: Any) -> Module:
    import msgspec

    return msgspec.structs.replace(module, **values)
