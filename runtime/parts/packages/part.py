"""The packages of one machine: nodes that download and install them, and queries for the rest of the machine."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio
from grpclib.exceptions import GRPCError, StreamTerminatedError

from engine import PartContext
from engine.planning import INTERNAL, NO_RESTART, package_node
from engine.views import DownloadStatus
from nursery_graph import Node, Restart
from runtime.programs import archive, install, store
from runtime.programs.command import data_folder, environment_of, machine_facts
from runtime.programs.configured import ConfiguredPackage, Key, configured_packages
from runtime.programs.store import Installed
from schema import ErrorKind, MachineError
from schema.document import MachineDocument, Module, PackageSource
from support import Worker
from telemetry.logs.logger_names import PACKAGES
from uplink import DownloadSource, Expected, Headers, IncompleteDownload, download, part_of

TIDY: Final = f"{INTERNAL}package-tidy"
AT_ONCE: Final = 2  # simultaneous downloads; more would only share the bandwidth
START_LIMIT: Final = 24 * 3600.0  # seconds; enough for a large package over a slow line; stalls are detected earlier
PROGRESS_INTERVAL: Final = 10.0  # seconds between log messages about a download
SIGN_IN_LIMIT: Final = 15.0  # seconds
RESTART: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=1.0, max_delay=300.0)
TIDY_RESTART: Final = Restart(kind="permanent", intensity=1_000_000, max_delay=60.0)

_log = structlog.get_logger(PACKAGES)


class Packages:
    """The packages of one machine. A new version replaces the old one when it is installed completely."""

    def __init__(self, context: PartContext) -> None:
        self._graph = context.graph
        self._cloud = context.cloud
        self.downloads: dict[str, DownloadStatus] = {}  # in progress, by SHA-256
        self._environment = context.environment
        self._changed = context.changed
        self._root = store.root_of(context.environment)
        self._installed = store.records(self._root)
        self._configured: dict[Key, ConfiguredPackage] = {}
        self._failures: dict[Key, str] = {}
        self._in_progress: set[tuple[Key, str]] = set()
        self._worker = Worker("packages")
        self._download_slots = trio.CapacityLimiter(AT_ONCE)
        self._untidy = trio.Event()
        self._untidy.set()

    # ---- for the rest of the machine

    def in_force(self, kind: str, name: str, named: str) -> Installed | None:
        """Return the installed version of a package whose entry has the package id `named`; None if there is none."""
        installed = self._installed.get((kind, name))
        return installed if installed is not None and installed.named == named else None

    def module(self, module: Module) -> Module | None:
        """Return the entry of a registry module with the installed version, also while another one is downloaded.

        None if no version is installed.
        """
        installed = self.in_force("module", module.name, module.module_id)
        if installed is None:
            return None
        source = PackageSource(package=module.module_id, version=installed.version, sha256=installed.sha256)
        return _replaced(module, version=installed.version, source=source)

    def failure(self, kind: str, name: str) -> str:
        """Return why the configured version of a package could not be installed; empty if it has not failed."""
        return self._failures.get((kind, name), "")

    def find(self, document: MachineDocument) -> Mapping[Key, str]:
        """Return the folders of the installed packages of a document, for its placeholders."""
        folders: dict[Key, str] = {}
        for key, package in configured_packages(document).items():
            record = self.in_force(*key, package.package_id)
            if record is not None:
                folders[key] = str(store.folder(self._root, key, record.sha256))
        return folders

    # ---- for the graph

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return a node for each package of `document`, and one that removes packages that are no longer needed."""
        self._configured = configured_packages(document)
        broken = any(entry.section in ("modules", "packages") for entry in document.broken)
        if not broken:  # else an entry that has become invalid would cause a deletion
            for key in self._installed.keys() - self._configured.keys():
                del self._installed[key]
        for key in self._failures.keys() - self._configured.keys():
            del self._failures[key]
        self._untidy.set()
        facts = machine_facts(document)
        data = data_folder(self._environment, document)
        nodes = [
            Node(
                package_node(*package.key),
                partial(self._live, package, facts, data),
                version=package.version,
                start_timeout=START_LIMIT,
                restart=NO_RESTART if package.source is not None and package.source.error else RESTART,
            )
            for package in self._configured.values()
        ]
        return [*nodes, Node(TIDY, self._tidy, restart=TIDY_RESTART)]

    async def _live(
        self,
        package: ConfiguredPackage,
        facts: Mapping[str, str],
        data: Any,
        deps: Mapping[str, Any],
        /,
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        key, source = package.key, package.source or PackageSource()
        async with self._worker.opened():
            current = self.in_force(*key, package.package_id)
            if current is None or current.sha256 != source.sha256:
                try:
                    record = await self._obtain(package, source, facts, data)
                except MachineError as error:
                    self._failed(package, str(error), current)
                    raise
                self._installed[key] = record
                self._untidy.set()
            if self._failures.pop(key, None) is not None or current != self._installed.get(key):
                self._changed()
        task_status.started()
        await trio.sleep_forever()

    def _failed(self, package: ConfiguredPackage, reason: str, current: Installed | None) -> None:
        """Record and log a failed installation, once for each reason."""
        if self._failures.get(package.key) == reason:
            return
        self._failures[package.key] = reason
        stays = {"in_force": current.version} if current is not None else {}
        _log.error(
            "a package cannot be installed", package=package.package_id, name=package.name, reason=reason, **stays
        )
        self._changed()

    async def _obtain(
        self, package: ConfiguredPackage, source: PackageSource, facts: Mapping[str, str], data: Any
    ) -> Installed:
        if source.error:
            raise MachineError(
                f"the cloud cannot provide {package.package_id}: {source.error}", kind=ErrorKind.PRECONDITION
            )
        if not source.sha256 or not source.url:
            raise MachineError(
                f"{package.path}: {package.package_id} has no download location",
                kind=ErrorKind.PRECONDITION,
                remedy="join the machine to a cloud: it provides packages and modules of the registry",
            )
        key, work = package.key, (package.key, source.sha256)
        self._in_progress.add(work)
        try:
            folder = store.folder(self._root, key, source.sha256)
            if not await self._worker.run(folder.is_dir):
                async with self._download_slots:
                    await self._download(package, source)
                await store.unpacked(self._root, key, source.sha256, self._worker)
            if package.module is not None:
                program = await self._worker.run(lambda: archive.read_meta(folder, folder))
                environment = environment_of(
                    package.module, program, "", data / package.name, inherited=self._environment, facts=facts
                )
                await install.first_run(package.module, program, environment)
            record = Installed(package.package_id, source.version, source.sha256)
            await self._worker.run(lambda: store.activate(self._root, key, record))
        except OSError as error:
            raise MachineError(
                f"{self._root} cannot be used: {error.strerror}",
                kind=ErrorKind.PRECONDITION,
                remedy="allow this user to write there, and check that the disk has space",
            ) from error
        finally:
            self._in_progress.discard(work)
        _log.info("a package was installed", package=package.package_id, version=source.version, folder=str(folder))
        return record

    async def _download(self, package: ConfiguredPackage, source: PackageSource) -> None:
        url, headers, tls = await self._where(source)
        last_logged = trio.current_time()

        def progress(received: int) -> None:
            nonlocal last_logged
            self.downloads[source.sha256] = DownloadStatus(package.package_id, source.version, received, source.size)
            if trio.current_time() - last_logged >= PROGRESS_INTERVAL:
                last_logged = trio.current_time()
                share = f"{100 * received // source.size} %" if source.size else f"{received} bytes"
                _log.info(
                    "a package is being downloaded", package=package.package_id, version=source.version, so_far=share
                )

        progress(0)
        try:
            await download(
                DownloadSource.of(url, headers, tls, etag=source.sha256),
                IncompleteDownload(part_of(self._root, source.sha256)),
                self._worker,
                Expected(source.sha256, source.size),
                progress=progress,
            )
        finally:
            self.downloads.pop(source.sha256, None)

    async def _where(self, source: PackageSource) -> tuple[str, Headers, ssl.SSLContext | None]:
        """Return URL, headers and TLS context of a download. The machine's token is sent only to its cloud."""
        if "://" in source.url:
            return source.url, (), None
        if self._cloud is None:
            raise MachineError(
                f"{source.url} is a path at a cloud, but this machine has not joined one", kind=ErrorKind.PRECONDITION
            )
        from uplink import HTTP1, token_headers

        address = self._cloud.address
        try:
            with trio.fail_after(SIGN_IN_LIMIT):
                return f"{address.url}{source.url}", await token_headers(address), address.tls(HTTP1)
        except trio.TooSlowError:
            reason = f"no answer within {SIGN_IN_LIMIT:g} s"
        except (GRPCError, StreamTerminatedError, OSError) as error:
            reason = getattr(error, "message", "") or str(error) or repr(error)
        raise MachineError(
            f"the cloud cannot be reached for a package: {reason}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="the download is retried automatically",
        )

    async def _tidy(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        """Remove packages that are no longer needed, once the graph has settled and nothing uses them."""
        task_status.started()
        while True:
            await self._untidy.wait()
            self._untidy = trio.Event()
            await self._graph.settled()
            configured = {
                (key, package.source.sha256) for key, package in self._configured.items() if package.source is not None
            }
            installed = {(key, record.sha256) for key, record in self._installed.items()}
            kept, parts = installed | configured | self._in_progress, {sha256 for _, sha256 in configured - installed}
            async with self._worker.opened():
                removed = await self._worker.run(lambda kept=kept, parts=parts: store.tidy(self._root, kept, parts))  # type: ignore[misc]
            for name in removed:
                _log.info("a package that is no longer needed was removed", folder=name)


def _replaced(module: Module, **values: Any) -> Module:
    import msgspec

    return msgspec.structs.replace(module, **values)
