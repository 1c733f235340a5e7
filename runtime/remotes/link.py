"""What this machine knows of one remote, over all connections to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog
import trio

from rpc.credentials import ApiKey
from runtime.apis import base_of
from runtime.machine import INTERNAL
from runtime.remotes import names
from runtime.remotes.client import RemoteClient, RemoteSession
from runtime.remotes.dial import Way
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName
from schema.remotes import Remote

PREFIX: Final = f"{INTERNAL}remote/"
NOT_YET: Final = "not connected yet"


class RemoteLink:
    """One configured remote. What it has is remembered while it is away."""

    def __init__(
        self, remote: Remote, way: Way, credentials: ApiKey | None, this_machine: str, changed: Callable[[], None]
    ) -> None:
        self.remote = remote
        self.way = way
        self.credentials = credentials
        self.node = f"{PREFIX}{remote.name}"
        self.path = ""  # where its entry stands: remotes.0
        self.resources: Mapping[ResourceName, str] = {}  # by their names here: what the remote calls them
        self.machines: Mapping[str, str] = {}  # who is behind each chain of its remotes, as it says
        self.client: RemoteClient | None = None  # while it is connected
        self.session = RemoteSession()
        self.failure = NOT_YET  # why it is not connected; empty while it is
        self.news = trio.Event()  # set, and replaced, when anything here has changed
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger(f"rdk.remote.{remote.name}")
        self._this_machine = this_machine
        self._changed = changed
        self._there: frozenset[ResourceName] = frozenset()  # what is taken over, as the remote calls it
        self._troubles: Mapping[ResourceName, str] = {}
        self._unserved: frozenset[str] = frozenset()

    def connected(self) -> RemoteClient:
        """Its client; MachineError (UNAVAILABLE) with the reason while it is away."""
        if self.client is None:
            raise MachineError(
                f"remote {self.remote.name!r} is not connected: {self.failure}", kind=ErrorKind.UNAVAILABLE
            )
        return self.client

    def trouble(self, name: ResourceName) -> str:
        """Why a resource cannot be used now; empty if it can, as far as is known."""
        if self.failure:
            return f"remote {self.remote.name!r} is not connected: {self.failure}"
        reason = self._troubles.get(name)
        return f"on remote {self.remote.name!r}: {reason}" if reason else ""

    # ---- for the life

    def opened(self, client: RemoteClient) -> None:
        """It is connected, and was asked what it has."""
        self.client, self.failure = client, ""
        self.log.info("connected", address=self.way.address, resources=len(self.resources))
        self._tell()

    def closed(self, reason: str) -> bool:
        """It is not connected, any more or still; whether it was. Said in the log once, not at every attempt."""
        was, self.client = self.client is not None, None
        if reason != self.failure:
            self.log.warning("disconnected" if was else "cannot be reached", address=self.way.address, reason=reason)
            self.failure = reason
            self._changed()
            self._tell()
        return was

    async def learn(self, report: names.Report) -> None:
        """The remote has said what it has: take over what has changed."""
        remote = self.remote
        found: dict[ResourceName, str] = {}
        served: list[ResourceName] = []
        unserved: set[str] = set()
        for there in sorted(names.wanted(report, self._there, self._this_machine)):
            await trio.lowlevel.checkpoint()  # a base class may be imported
            if base_of(there.api) is None:
                unserved.add(str(there.api))
            else:
                served.append(there)
                found[names.name_here(there, remote.name, remote.prefix)] = there.short
        if unserved != self._unserved:
            self._unserved = frozenset(unserved)
            if unserved:
                self.log.warning("this machine does not serve some of its APIs", apis=sorted(unserved))
        if report.machines.get("") == self._this_machine:
            self.log.warning("this remote is the machine itself: nothing is taken over from it")
        self._troubles = {
            names.name_here(there, remote.name, remote.prefix): why for there, why in report.troubles.items()
        }
        self._there = frozenset(served)
        self.machines = report.machines
        if found != self.resources:
            self.resources = found
            self._changed()
        self._tell()

    def _tell(self) -> None:
        self.news.set()
        self.news = trio.Event()
