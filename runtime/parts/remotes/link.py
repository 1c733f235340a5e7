"""The state of one remote for the rest of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog
import trio

from engine import base_of
from engine.calls import Introduction
from engine.planning import REMOTE, RemoteReport, name_here, usable_names
from rpc.client import ApiKey
from runtime.parts.remotes.client import RemoteClient, RemoteSession
from runtime.parts.remotes.dial import Route
from schema import ErrorKind, MachineError, ResourceName
from schema.document import Remote
from support import ChangeSignal

NOT_YET: Final = "not connected yet"


class RemoteLink:
    """One configured remote, across connections. Its resources stay known while it is disconnected."""

    def __init__(
        self, remote: Remote, route: Route, credentials: ApiKey | None, this_machine: str, changed: Callable[[], None]
    ) -> None:
        self.remote = remote
        self.route = route
        self.credentials = credentials
        self.node = f"{REMOTE}{remote.name}"
        self.place = ""  # of its entry in the document: remotes.0
        self.resources: Mapping[ResourceName, str] = {}  # names on the remote, by names on this machine
        self.machines: Mapping[str, str] = {}  # instance ids by chain of its remotes, as reported
        self.client: RemoteClient | None = None  # while it is connected
        self.session = RemoteSession()
        self.introduction: Introduction | None = None  # the last one, if the remote is a machine of the cloud
        self.path = ""  # of calls, for people; empty while it is not connected, and for remotes with only one
        self.failure = NOT_YET  # why it is not connected; empty while it is
        self.news = ChangeSignal()  # at each change of anything here
        self.log: structlog.stdlib.BoundLogger = structlog.get_logger(f"rdk.remote.{remote.name}")
        self._this_machine = this_machine
        self._changed = changed
        self._remote_names: frozenset[ResourceName] = frozenset()  # names on the remote of the resources used here
        self._problems: Mapping[ResourceName, str] = {}
        self._unserved: frozenset[str] = frozenset()

    def connected(self) -> RemoteClient:
        """Return the client. Raises MachineError (UNAVAILABLE) with the reason while it is not connected."""
        if self.client is None:
            raise MachineError(
                f"remote {self.remote.name!r} is not connected: {self.failure}", kind=ErrorKind.UNAVAILABLE
            )
        return self.client

    def problem_of(self, name: ResourceName) -> str:
        """Return why a resource cannot be used now; empty if there is no known reason."""
        if self.failure:
            return f"remote {self.remote.name!r} is not connected: {self.failure}"
        reason = self._problems.get(name)
        return f"on remote {self.remote.name!r}: {reason}" if reason else ""

    # ---- for RemoteLife

    def opened(self, client: RemoteClient, path: str, address: str) -> None:
        """Record that the remote is connected by `path`, and its resources are known."""
        self.client, self.failure = client, ""
        self.path = f"{path}, at {address}" if path else ""
        self.log.info("connected", address=address, resources=len(self.resources), **({"path": path} if path else {}))
        self._notify()

    def closed(self, reason: str) -> None:
        """Record that the remote is not connected. Repeated failures with the same reason are logged once."""
        was_connected, self.client, self.path = self.client is not None, None, ""
        if reason != self.failure:
            self.log.warning(
                "disconnected" if was_connected else "cannot be reached", address=self.route.address, reason=reason
            )
            self.failure = reason
            self._changed()
            self._notify()

    async def learn(self, report: RemoteReport) -> None:
        """Update the resources and their troubles from a report of the remote."""
        remote = self.remote
        resources: dict[ResourceName, str] = {}
        served: list[ResourceName] = []
        unserved: set[str] = set()
        for remote_name in sorted(usable_names(report, self._remote_names, self._this_machine)):
            await trio.lowlevel.checkpoint()  # a base class may be imported
            if base_of(remote_name.api) is None:
                unserved.add(str(remote_name.api))
            else:
                served.append(remote_name)
                resources[name_here(remote_name, remote.name, remote.prefix)] = remote_name.short
        if unserved != self._unserved:
            self._unserved = frozenset(unserved)
            if unserved:
                self.log.warning("this machine does not support some APIs of the remote", apis=sorted(unserved))
        if report.machines.get("") == self._this_machine:
            self.log.warning("this remote is the machine itself: its resources are not used")
        self._problems = {
            name_here(remote_name, remote.name, remote.prefix): why for remote_name, why in report.troubles.items()
        }
        self._remote_names = frozenset(served)
        self.machines = report.machines
        if resources != self.resources:
            self.resources = resources
            self._changed()
        self._notify()

    def _notify(self) -> None:
        self.news.announce()
