"""All remotes of one machine: their nodes, the resources that they bring, and what the plan may ask of them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio

from nursery_graph import Node, Restart
from runtime.apis import base_of
from runtime.parts import Surroundings
from runtime.proxy import proxy_of
from runtime.reconfigure import Wanted
from runtime.refused import NO_RESTART, refused
from runtime.remotes.dial import Dial, credentials_of, way_to
from runtime.remotes.dial import dial as network
from runtime.remotes.life import RemoteLife
from runtime.remotes.link import NOT_YET, PREFIX, RemoteLink
from runtime.remotes.names import behind
from runtime.remotes.resource import RemoteAttributes, RemoteResource
from schema.errors import MachineError
from schema.machine import MachineDocument
from schema.remotes import Remote

MODEL: Final = "remote"  # what status shows as the model of a resource of a remote
RESTART: Final = Restart(intensity=1_000_000, max_delay=10.0)
START_LIMIT: Final = 30.0  # seconds; a life is ready by itself long before
MACHINES: Final = 64  # that are told of to machines which have this one as their remote


class Remotes:
    """The part of a machine that is other machines."""

    def __init__(self, around: Surroundings, *, dial: Dial | None = None) -> None:
        self._machine = around.machine
        self._dial = dial or partial(network, trusted=self._trusted)
        self._changed = around.changed
        self.links: dict[str, RemoteLink] = {}
        self._faults: dict[str, MachineError] = {}
        self._versions: dict[str, str] = {}

    def _trusted(self) -> str:
        """What the machines of this one's organization are trusted by; "" without a certificate of the cloud."""
        link = self._machine.cloud
        return link.certificate.roots if link is not None and link.certificate is not None else ""

    # ---- for the graph

    def nodes(self, document: MachineDocument) -> list[Node]:
        """The nodes of the remotes of `document`."""
        found = {
            remote.name: (remote, path)
            for remote, path in zip(document.remotes, document.places("remotes"), strict=True)
        }
        for gone in self._versions.keys() - found.keys():
            del self._versions[gone]
            self.links.pop(gone, None)
        self._faults.clear()
        return [self._node(remote, path) for remote, path in found.values()]

    def _node(self, remote: Remote, path: str) -> Node:
        name = f"{PREFIX}{remote.name}"
        version = _version(remote)
        try:
            if self._versions.get(remote.name) != version:
                self.links.pop(remote.name, None)
                self._versions[remote.name] = version
            if remote.name not in self.links:
                self.links[remote.name] = RemoteLink(
                    remote, way_to(remote, path), credentials_of(remote, path), self._machine.instance, self._changed
                )
                if remote.frame is not None:
                    self.links[remote.name].log.warning("its frame is not used: frames of remotes are not followed yet")
        except MachineError as fault:
            self._faults[remote.name] = fault
            return Node(name, refused(fault), version=(version, str(fault)), restart=NO_RESTART)
        link = self.links[remote.name]
        link.path = path
        return Node(name, partial(_live, link, self._dial), version=version, start_timeout=START_LIMIT, restart=RESTART)

    # ---- for the plan

    def wanted(self) -> Iterator[Wanted]:
        """Every resource that remotes have, or had when they were last connected."""
        for link in self.links.values():
            for name, there in link.resources.items():
                base: Any = base_of(name.api)
                yield Wanted(
                    name=name,
                    path=link.path,
                    model=MODEL,
                    version=(self._versions[link.remote.name], there),
                    requires=frozenset({link.node}),
                    cls=proxy_of(base, RemoteResource),
                    attributes=RemoteAttributes(link=link, there=there),
                )

    def absent(self, text: str) -> str:
        """Why a resource called `text` may be missing that a remote could have; empty if remotes say nothing of it."""
        waiting = {name: link.failure for name, link in self.links.items() if link.failure}
        waiting |= {name: fault.message for name, fault in self._faults.items()}
        first, colon, _ = text.rpartition("/")[2].partition(":")
        if colon:
            if first in waiting:
                return f"the remote {first!r} is not connected: {waiting[first]}"
            return f"the remote {first!r} has none of that name" if first in self.links else ""
        listed = ", ".join(f"{name} ({reason})" for name, reason in waiting.items())
        return f"a remote may have it and is not connected: {listed}" if waiting else ""

    def starting(self) -> list[str]:
        """Nodes of remotes that were not tried yet."""
        return [link.node for link in self.links.values() if link.failure == NOT_YET]

    # ---- for machines that have this one as their remote

    def machines(self) -> dict[str, str]:
        """Who is behind each chain of remotes."""
        chains = itertools.chain.from_iterable(behind(name, link.machines) for name, link in self.links.items())
        return dict(itertools.islice(chains, MACHINES))


def _version(remote: Remote) -> str:
    """A digest of what matters to the connection; it tells nothing of secrets."""
    facts: Mapping[str, Any] = msgspec.to_builtins(remote)
    relevant = {key: value for key, value in facts.items() if key not in ("frame", "service_configs", "managed_by")}
    return hashlib.sha256(msgspec.json.encode(relevant, order="sorted")).hexdigest()


async def _live(
    link: RemoteLink, dial: Dial, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[RemoteLink]
) -> None:
    await RemoteLife(link, dial=dial).run(task_status=task_status)
