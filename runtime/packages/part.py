"""The packages of one machine: a node for each, which makes it be there; and what the rest of the machine asks."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio
from grpclib.exceptions import GRPCError, StreamTerminatedError

from nursery_graph import Node, Restart
from runtime.machine import INTERNAL
from runtime.modules import archive, install
from runtime.modules.command import data_folder, environment_of, machine_facts
from runtime.modules.manager import PACKAGE
from runtime.packages import store
from runtime.packages.store import Installed
from runtime.packages.wanted import Key, Wanted, wanted_of
from runtime.parts import Surroundings
from runtime.refused import NO_RESTART
from runtime.status import DownloadStatus
from schema.errors import ErrorKind, MachineError
from schema.machine import MachineDocument
from schema.modules import Module
from schema.packages import PackageSource
from support.worker import Worker
from telemetry.names import PACKAGES
from uplink.download import Headers, Part, Stopped, download

TIDY: Final = f"{INTERNAL}package-tidy"
AT_ONCE: Final = 2  # downloads; more would only share the line
START_LIMIT: Final = 24 * 3600.0  # seconds for a package: a large one over a slow line; a line that is still is noticed
TOLD: Final = 10.0  # seconds between two messages about a download
SIGN_IN_LIMIT: Final = 15.0  # seconds
RESTART: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=1.0, max_delay=300.0)
TIDY_RESTART: Final = Restart(kind="permanent", intensity=1_000_000, max_delay=60.0)

_log = structlog.get_logger(PACKAGES)


class Packages:
    """Knows what is in force of each package. A new version comes into force when it is there and ready to be used."""

    def __init__(self, around: Surroundings) -> None:
        self._machine = around.machine
        self._environment = around.environment
        self._changed = around.changed
        self._root = store.root_of(around.environment)
        self._installed = store.records(self._root)
        self._wanted: dict[Key, Wanted] = {}
        self._troubles: dict[Key, str] = {}
        self._busy: set[tuple[Key, str]] = set()
        self._worker = Worker("packages")
        self._lines = trio.CapacityLimiter(AT_ONCE)
        self._untidy = trio.Event()
        self._untidy.set()

    # ---- what the rest of the machine asks

    def in_force(self, kind: str, name: str, named: str) -> Installed | None:
        """What is there of a package that its entry calls `named`; None before it is there."""
        found = self._installed.get((kind, name))
        return found if found is not None and found.named == named else None

    def module(self, module: Module) -> Module | None:
        """The entry of a module of the registry as it can be started now: with the version in force, whatever is on
        its way. None before any version is there."""
        found = self.in_force("module", module.name, module.module_id)
        if found is None:
            return None
        source = PackageSource(package=module.module_id, version=found.version, sha256=found.sha256)
        return _replaced(module, version=found.version, source=source)

    def trouble(self, kind: str, name: str) -> str:
        """Why the wanted version of a package is not there; empty while nothing is known against it."""
        return self._troubles.get((kind, name), "")

    def find(self, document: MachineDocument) -> Mapping[Key, str]:
        """The folders of the packages of a document, for its placeholders; those that are not there are left out."""
        found: dict[Key, str] = {}
        for key, wanted in wanted_of(document).items():
            record = self.in_force(*key, wanted.named)
            if record is not None:
                found[key] = str(store.folder(self._root, key, record.sha256))
        return found

    # ---- for the graph

    def nodes(self, document: MachineDocument) -> list[Node]:
        """A node for each package, and one that removes what is needed no more."""
        self._wanted = wanted_of(document)
        broken = any(entry.section in ("modules", "packages") for entry in document.broken)
        if not broken:  # a mistake in an entry is no order to delete
            for key in self._installed.keys() - self._wanted.keys():
                del self._installed[key]
        for key in self._troubles.keys() - self._wanted.keys():
            del self._troubles[key]
        self._untidy.set()
        facts = machine_facts(document)
        data = data_folder(self._environment, document)
        nodes = [
            Node(
                name_of(*wanted.key),
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
        wanted: Wanted,
        facts: Mapping[str, str],
        data: Any,
        deps: Mapping[str, Any],
        /,
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        key, source = wanted.key, wanted.source or PackageSource()
        async with self._worker.opened():
            current = self.in_force(*key, wanted.named)
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

    def _failed(self, wanted: Wanted, reason: str, current: Installed | None) -> None:
        """Told once for each reason."""
        if self._troubles.get(wanted.key) == reason:
            return
        self._troubles[wanted.key] = reason
        stays = {"in_force": current.version} if current is not None else {}
        _log.error("a package cannot be had", package=wanted.named, name=wanted.name, reason=reason, **stays)
        self._changed()

    async def _obtain(self, wanted: Wanted, source: PackageSource, facts: Mapping[str, str], data: Any) -> Installed:
        if source.error:
            raise MachineError(f"the cloud cannot provide {wanted.named}: {source.error}", kind=ErrorKind.PRECONDITION)
        if not source.sha256 or not source.url:
            raise MachineError(
                f"{wanted.path}: where {wanted.named} comes from is not known",
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
            record = Installed(wanted.named, source.version, source.sha256)
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
        _log.info("a package is there", package=wanted.named, version=source.version, folder=str(folder))
        return record

    async def _download(self, wanted: Wanted, source: PackageSource) -> None:
        url, headers, tls = await self._where(source)
        told = trio.current_time()

        def progress(there: int) -> None:
            nonlocal told
            self._machine.downloads[source.sha256] = DownloadStatus(wanted.named, source.version, there, source.size)
            if trio.current_time() - told >= TOLD:
                told = trio.current_time()
                share = f"{100 * there // source.size} %" if source.size else f"{there} bytes"
                _log.info("a package is being downloaded", package=wanted.named, version=source.version, so_far=share)

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
            self._machine.downloads.pop(source.sha256, None)

    async def _where(self, source: PackageSource) -> tuple[str, Headers, ssl.SSLContext | None]:
        """Address, headers and whom to trust: the token of this machine is for its cloud only."""
        if "://" in source.url:
            return source.url, (), None
        link = self._machine.cloud
        if link is None:
            raise MachineError(
                f"{source.url} is at a cloud, and this machine has joined none", kind=ErrorKind.PRECONDITION
            )
        from uplink.dial import HTTP1, token_headers

        address = link.address
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
        """Remove what is needed no more, when nothing that runs can use it any more."""
        task_status.started()
        while True:
            await self._untidy.wait()
            self._untidy = trio.Event()
            await self._machine.graph.settled()
            wanted = {(key, one.source.sha256) for key, one in self._wanted.items() if one.source is not None}
            there = {(key, record.sha256) for key, record in self._installed.items()}
            kept, parts = there | wanted | self._busy, {sha256 for _, sha256 in wanted - there}
            async with self._worker.opened():
                gone = await self._worker.run(lambda kept=kept, parts=parts: store.tidy(self._root, kept, parts))  # type: ignore[misc]
            for name in gone:
                _log.info("a package that is needed no more was removed", folder=name)


def name_of(kind: str, name: str) -> str:
    """The node of a package."""
    return f"{PACKAGE}{kind}/{name}"


def _replaced(module: Module, **values: Any) -> Module:
    import msgspec

    return msgspec.structs.replace(module, **values)
