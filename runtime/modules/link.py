"""What the rest of the machine knows of one module: what it offers, what its resources need, how to speak to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import trio

from runtime.machine import INTERNAL
from runtime.modules.client import ModuleClient, Needs, Offer
from schema.errors import ErrorKind, MachineError
from schema.machine import ResourceEntry
from schema.modules import Module
from schema.names import API, Model

if TYPE_CHECKING:
    from runtime.modules.foreign import ForeignApi

ASK_AGAIN: Final = 2.0  # seconds after a question that was not answered
PREFIX: Final = f"{INTERNAL}module/"


class ModuleLink:
    """One configured module, over all its starts. What it offered last is remembered while it is away."""

    def __init__(self, module: Module, path: str, changed: Callable[[], None]) -> None:
        self.module = module
        self.path = path  # where its entry stands: modules.0
        self.node = f"{PREFIX}{module.name}"
        self.offers: frozenset[tuple[API, Model]] = frozenset()
        self.apis: Mapping[API, ForeignApi] = MappingProxyType({})  # those that the machine has no class for
        self.faults: Mapping[API, str] = MappingProxyType({})  # why nothing is known of some of them
        self.client: ModuleClient | None = None  # while it runs and is ready
        self.starting: ModuleClient | None = None  # while it runs
        self.pid: int | None = None  # of its process, while it runs
        self.phase = "starting"  # what is being done until it is ready
        self.ended = False  # it ran and does not any more
        self.failure = ""  # why it ended last; empty since it was ready
        self.failures = 0  # how often it ended by itself, or did not start, since it was ready
        self._changed = changed
        self._entries: tuple[ResourceEntry, ...] = ()
        self._needs: dict[str, Needs] = {}
        self._news = trio.Event()

    def configure(self, module: Module, path: str, entries: Iterable[ResourceEntry]) -> None:
        """A document came into force: the module's own entry, and all resources of the machine."""
        self.module, self.path = module, path
        self._entries = tuple(entries)
        versions = {entry.version for entry in self._entries}
        self._needs = {version: needs for version, needs in self._needs.items() if version in versions}
        self._news.set()

    def needs(self, entry: ResourceEntry) -> Needs | None:
        """What the module said of this very entry; None before it was asked."""
        return self._needs.get(entry.version)

    @property
    def waiting(self) -> str:
        """Why it is not ready; empty if it is."""
        if self.client is not None:
            return ""
        trouble = self.starting.trouble if self.starting is not None else ""
        phase = "ended" if self.ended else self.phase
        return self.failure or (f"{phase}: {trouble}" if trouble else phase)

    def starts(self) -> None:
        """Note that a start begins."""
        self.ended = False
        self.phase = "starting"

    def connected(self) -> ModuleClient:
        """Its client; MachineError (UNAVAILABLE) while it does not run."""
        if self.client is None:
            raise MachineError(
                f"the module {self.module.name!r} is away ({self.waiting})",
                kind=ErrorKind.UNAVAILABLE,
                remedy="try again later",
            )
        return self.client

    async def opened(
        self, client: ModuleClient, offer: Offer, apis: Mapping[API, ForeignApi], faults: Mapping[API, str]
    ) -> None:
        """The module is ready: ask it about its resources and let the machine be planned anew."""
        self._needs.clear()
        self.offers, self.apis, self.faults = offer.models, apis, faults
        await self._validate(client)
        self.client = client
        self.failure, self.failures = "", 0
        self._changed()

    async def follow(self) -> None:
        """Ask about resources that come later, and again about those it was silent on, until cancelled."""
        while True:
            silent = any(needs.silent for needs in self._needs.values())
            with trio.move_on_after(ASK_AGAIN if silent else inf):
                await self._news.wait()
            if await self._validate(self.connected()):
                self._changed()

    def failed(self, reason: str) -> None:
        """It ended by itself, or did not start: entries that wait for it say why."""
        self.failures += 1
        if reason != self.failure:
            self.failure = reason
            self._changed()

    def closed(self) -> None:
        """The module does not run any more."""
        self.client = self.starting = self.pid = None
        self.ended = True

    async def _validate(self, client: ModuleClient) -> bool:
        """Ask about entries that it has not answered for, all at once; whether there is anything new."""
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
