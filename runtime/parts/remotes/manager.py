"""All remotes of one machine: their nodes, their resources, and queries for the plan."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio

from engine import PartContext, base_of, proxy_of
from engine.planning import NO_RESTART, REMOTE, PlannedResource, behind, refusal
from nursery_graph import Node, Restart
from rpc.client import DialTarget
from runtime.parts.remotes.dial import Dial, Mode, Route, credentials_of, part_of, route_to
from runtime.parts.remotes.dial import dial as network_dial
from runtime.parts.remotes.life import RemoteLife
from runtime.parts.remotes.link import NOT_YET, RemoteLink
from runtime.parts.remotes.resource import RemoteAttributes, RemoteResource
from schema import MachineError
from schema.document import MachineDocument, Remote

MODEL: Final = "remote"  # model in the status of a remote's resources
RESTART: Final = Restart(intensity=1_000_000, max_delay=10.0)
START_LIMIT: Final = 30.0  # seconds; RemoteLife is ready long before
MACHINES: Final = 64  # maximum number of machines reported to machines that have this one as a remote


class Remotes:
    """The part of machine-server that connects to remotes."""

    def __init__(self, context: PartContext, *, dial: Dial | None = None) -> None:
        self._cloud = context.cloud
        self._instance = context.instance
        self._dial = dial or partial(network_dial, trusted=self._trusted)
        self._changed = context.changed
        self.links: dict[str, RemoteLink] = {}
        self._faults: dict[str, MachineError] = {}
        self._versions: dict[str, str] = {}

    def _trusted(self) -> str:
        """Return root certificates for machines of the same organization; "" without a certificate of the cloud."""
        cloud = self._cloud
        return cloud.certificate.roots if cloud is not None and cloud.certificate is not None else ""

    # ---- for the graph

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return the nodes of the remotes of `document`."""
        entries = {
            remote.name: (remote, path)
            for remote, path in zip(document.remotes, document.places("remotes"), strict=True)
        }
        for name in self._versions.keys() - entries.keys():
            del self._versions[name]
            self.links.pop(name, None)
        self._faults.clear()
        domain = document.cloud.machine_domain if document.cloud is not None else ""
        return [
            self._node(remote, path, part_of(remote, domain) if self._cloud is not None else "")
            for remote, path in entries.values()
        ]

    def _node(self, remote: Remote, path: str, part: str) -> Node:
        """Return the node of a remote, which is `part` of the cloud, or "" for another machine."""
        name = f"{REMOTE}{remote.name}"
        version = f"{_version(remote)} {part}"
        try:
            if self._versions.get(remote.name) != version:
                self.links.pop(remote.name, None)
                self._versions[remote.name] = version
            if remote.name not in self.links:
                self.links[remote.name] = self._link(remote, path, part)
                if remote.frame is not None:
                    self.links[remote.name].log.warning(
                        "the frame of the remote has no effect: frames of remotes are not implemented"
                    )
        except MachineError as fault:
            self._faults[remote.name] = fault
            return Node(name, refusal(fault), version=(version, str(fault)), restart=NO_RESTART)
        link = self.links[remote.name]
        link.place = path
        run = partial(_live, link, self._dial_cloud if part else self._dial)
        return Node(name, run, version=version, start_timeout=START_LIMIT, restart=RESTART)

    def _link(self, remote: Remote, path: str, part: str) -> RemoteLink:
        credentials = credentials_of(remote, path)
        if not part:
            return RemoteLink(remote, route_to(remote, path), credentials, self._instance, self._changed)
        assert self._cloud is not None
        address = self._cloud.address
        if credentials is None:  # the main part of a machine may call the others
            credentials = address.credentials()
        route_to(remote, path)  # checks the entry
        target = DialTarget.parse(address.url)
        mode: Mode = "tls" if address.secure else "plain"
        route = Route(target, mode, secret=True, part=part)
        return RemoteLink(remote, route, credentials, self._instance, self._changed)

    async def _dial_cloud(self, route: Route) -> trio.abc.Stream:
        """Connect to the cloud, whose certificates are trusted as for all other connections to it."""
        assert self._cloud is not None
        return await network_dial(route, context=self._cloud.address.tls)

    # ---- for the plan

    def planned_resources(self) -> Iterator[PlannedResource]:
        """Yield every resource of the remotes, as last reported."""
        for link in self.links.values():
            for name, remote_name in link.resources.items():
                base: Any = base_of(name.api)
                yield PlannedResource(
                    name=name,
                    path=link.place,
                    model=MODEL,
                    version=(self._versions[link.remote.name], remote_name),
                    requires=frozenset({link.node}),
                    cls=proxy_of(base, RemoteResource),
                    attributes=RemoteAttributes(link=link, remote_name=remote_name),
                )

    def absent(self, text: str) -> str:
        """Return why a resource named `text` may be missing on a remote; empty if no remote can be the cause."""
        waiting = {name: link.failure for name, link in self.links.items() if link.failure}
        waiting |= {name: fault.message for name, fault in self._faults.items()}
        first, colon, _ = text.rpartition("/")[2].partition(":")
        if colon:
            if first in waiting:
                return f"the remote {first!r} is not connected: {waiting[first]}"
            return f"the remote {first!r} has no resource of that name" if first in self.links else ""
        listed = ", ".join(f"{name} ({reason})" for name, reason in waiting.items())
        return f"it may be on a remote that is not connected: {listed}" if waiting else ""

    def path_of(self, node: str) -> str:
        """Return the path of calls to the remote with this node; "" while it is not connected, or has only one."""
        return next((link.path for link in self.links.values() if link.node == node), "")

    def starting(self) -> list[str]:
        """Return the nodes of remotes whose first attempt to connect has not ended."""
        return [link.node for link in self.links.values() if link.failure == NOT_YET]

    # ---- for machines that have this one as a remote

    def machines(self) -> dict[str, str]:
        """Return the instance ids of at most MACHINES machines, by their chain of remotes."""
        chains = itertools.chain.from_iterable(behind(name, link.machines) for name, link in self.links.items())
        return dict(itertools.islice(chains, MACHINES))


def _version(remote: Remote) -> str:
    """Return a digest of the settings that affect the connection; it does not reveal secrets."""
    facts: Mapping[str, Any] = msgspec.to_builtins(remote)
    relevant = {key: value for key, value in facts.items() if key not in ("frame", "service_configs", "managed_by")}
    return hashlib.sha256(msgspec.json.encode(relevant, order="sorted")).hexdigest()


async def _live(
    link: RemoteLink, dial: Dial, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[RemoteLink]
) -> None:
    await RemoteLife(link, dial=dial).run(task_status=task_status)
