"""The parts of a machine other than its resources and its port: jobs, modules, remotes and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog
import trio

from engine.calls.spans import Tracer
from engine.options import Options
from engine.roster import Roster
from hal import Hardware
from nursery_graph import Graph, Node
from schema.document import MachineDocument

if TYPE_CHECKING:
    from engine.metrics.history import History
    from rpc import Router
    from uplink import CloudAddress, CloudCertificate


class CloudAccess(Protocol):
    """How the cloud of a machine is reached."""

    @property
    def address(self) -> CloudAddress:
        """Where the cloud is, and with which credentials."""
        ...

    @property
    def certificate(self) -> CloudCertificate | None:
        """The certificate that the cloud gives; None where the cloud is reached in plain text."""
        ...


class Part(Protocol):
    """Constructed once with a PartContext, at the first document that needs it; then asked at every document."""

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return the nodes that `document` asks for; may be called again with the same document, and must not block."""
        ...


@dataclass(frozen=True, slots=True)
class PartContext:
    """What every part is constructed with."""

    options: Options
    environment: Mapping[str, str]
    graph: Graph
    roster: Roster
    router: Router  # every API of the machine; calls through it are like those of clients
    hardware: Hardware
    tracer: Tracer
    sample: Callable[[], dict[str, float]]  # everything that the machine counts, now
    history: History  # of the samples
    cloud: CloudAccess | None  # None on a machine that was started without a cloud
    instance: str  # tells this process from other machines, for those that have it as a remote
    log: structlog.stdlib.BoundLogger
    stopping: trio.Event  # an orderly stop has begun
    parts: Mapping[str, Part]  # those that documents have needed so far, by name
    changed: Callable[[], None]  # to be called when the document in force must be planned again
