"""The state of one module for the rest of the machine: its offers, the needs of its resources, its client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import trio

from engine.planning import INTERNAL
from runtime.parts.modules.client import ModuleClient, Needs, Offer
from schema import API, ErrorKind, MachineError, Model
from schema.document import Module, ResourceEntry

if TYPE_CHECKING:
    from runtime.parts.modules.foreign import ForeignApi

ASK_AGAIN: Final = 2.0  # seconds until a validation that was not answered is repeated
PREFIX: Final = f"{INTERNAL}module/"


class ModuleLink:
    """One configured module, across restarts. Its last offer stays known while it does not run."""

    def __init__(self, module: Module, path: str, changed: Callable[[], None]) -> None:
        self.module = module
        self.path = path  # of its entry in the document: modules.0
        self.node = f"{PREFIX}{module.name}"
        self.offers: frozenset[tuple[API, Model]] = frozenset()
        self.apis: Mapping[API, ForeignApi] = MappingProxyType({})  # APIs that the machine has no class for
        self.faults: Mapping[API, str] = MappingProxyType({})  # why some of their descriptors are missing
        self.client: ModuleClient | None = None  # while it runs and is ready
        self.starting: ModuleClient | None = None  # while it runs
        self.pid: int | None = None  # of its process, while it runs
        self.phase = "starting"  # the current step before it is ready
        self.ended = False  # it ran and has ended
        self.failure = ""  # why it ended last; empty once it was ready again
        self.failures = 0  # unexpected ends and failed starts since it was last ready
        self._changed = changed
        self._entries: tuple[ResourceEntry, ...] = ()
        self._needs: dict[str, Needs] = {}
        self._news = trio.Event()

    def configure(self, module: Module, path: str, entries: Iterable[ResourceEntry]) -> None:
        """Apply a new document: the module's own entry, its path, and the entries of all resources."""
        self.module, self.path = module, path
        self._entries = tuple(entries)
        versions = {entry.version for entry in self._entries}
        self._needs = {version: needs for version, needs in self._needs.items() if version in versions}
        self._news.set()

    def needs(self, entry: ResourceEntry) -> Needs | None:
        """Return the module's answer for exactly this entry, or None if it has not been validated yet."""
        return self._needs.get(entry.version)

    @property
    def waiting(self) -> str:
        """Why the module is not ready; empty if it is."""
        if self.client is not None:
            return ""
        reason = self.starting.not_ready_reason if self.starting is not None else ""
        phase = "ended" if self.ended else self.phase
        return self.failure or (f"{phase}: {reason}" if reason else phase)

    def starts(self) -> None:
        """Record that a start begins."""
        self.ended = False
        self.phase = "starting"

    def connected(self) -> ModuleClient:
        """Return the client. Raises MachineError (UNAVAILABLE) while the module is not ready."""
        if self.client is None:
            raise MachineError(
                f"the module {self.module.name!r} is not ready ({self.waiting})",
                kind=ErrorKind.UNAVAILABLE,
                remedy="try again later",
            )
        return self.client

    async def opened(
        self, client: ModuleClient, offer: Offer, apis: Mapping[API, ForeignApi], faults: Mapping[API, str]
    ) -> None:
        """Record that the module is ready: validate its resources and request a new plan of the machine."""
        self._needs.clear()
        self.offers, self.apis, self.faults = offer.models, apis, faults
        await self._validate(client)
        self.client = client
        self.failure, self.failures = "", 0
        self._changed()

    async def follow(self) -> None:
        """Validate new resources as they come, and unanswered ones again, until cancelled."""
        while True:
            silent = any(needs.silent for needs in self._needs.values())
            with trio.move_on_after(ASK_AGAIN if silent else inf):
                await self._news.wait()
            if await self._validate(self.connected()):
                self._changed()

    def failed(self, reason: str) -> None:
        """Record that the module ended unexpectedly or did not start; waiting entries show the reason."""
        self.failures += 1
        if reason != self.failure:
            self.failure = reason
            self._changed()

    def closed(self) -> None:
        """Record that the module does not run any more."""
        self.client = self.starting = self.pid = None
        self.ended = True

    async def _validate(self, client: ModuleClient) -> bool:
        """Validate all entries without an answer concurrently, and return whether any answer changed."""
        self._news = trio.Event()
        entries = [
            entry
            for entry in self._entries
            if (entry.api, entry.model) in self.offers
            and (entry.version not in self._needs or self._needs[entry.version].silent)
        ]
        before = dict(self._needs)

        async def ask(entry: ResourceEntry) -> None:
            self._needs[entry.version] = await client.validate(entry)

        async with trio.open_nursery() as nursery:
            for entry in entries:
                nursery.start_soon(ask, entry)
        return self._needs != before
