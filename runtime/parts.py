"""What a machine has besides resources and its port: jobs, modules and the like, imported when a machine needs it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from nursery_graph import Node
from schema.machine import MachineDocument

if TYPE_CHECKING:
    from rpc.call import Router
    from runtime.machine import Machine
    from runtime.options import Options


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every part is constructed with."""

    machine: Machine
    router: Router  # every API of the machine; calls through it are like those of clients
    environment: Mapping[str, str]
    changed: Callable[[], None]  # to be called when the document in force must be planned anew


class Part(Protocol):
    """Constructed once with Surroundings, at the first document that needs it; then asked at every document."""

    def nodes(self, document: MachineDocument) -> list[Node]:
        """The nodes that `document` asks for; may be called again with the same document, and must not block."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of part: when a machine needs it, and where its class is."""

    needed: Callable[[MachineDocument, Options], bool]
    path: str  # module:Class


def _captures(document: MachineDocument, options: Options) -> bool:
    """Whether anything is said about data capture."""
    return any(entry.api.subtype == "data_manager" for entry in document.services) or any(
        config.type.endswith("data_manager") for entry in document.resources for config in entry.service_configs
    )


KINDS: Final[Mapping[str, Kind]] = {
    "jobs": Kind(lambda document, options: bool(document.jobs), "runtime.jobs.nodes:Jobs"),
    "ftdc": Kind(lambda document, options: options.ftdc, "runtime.ftdc.recorder:Recorder"),
    "telemetry": Kind(
        lambda document, options: options.output_telemetry or document.tracing.enabled,
        "runtime.metrics.output:Telemetry",
    ),
    "network-check": Kind(
        lambda document, options: document.cloud is not None, "runtime.netcheck.background:NetworkChecks"
    ),
    "cloud": Kind(lambda document, options: document.cloud is not None, "runtime.cloud.part:CloudPart"),
    "packages": Kind(
        lambda document, options: bool(document.packages) or any(one.type == "registry" for one in document.modules),
        "runtime.packages.part:Packages",
    ),
    "modules": Kind(lambda document, options: bool(document.modules), "runtime.modules.manager:Modules"),
    "remotes": Kind(lambda document, options: bool(document.remotes), "runtime.remotes.manager:Remotes"),
    "mdns": Kind(lambda document, options: options.mdns, "runtime.mdns.part:Mdns"),
    "capture": Kind(_captures, "runtime.data.part:Captures"),
}
"""Asked in this order: a part may look at those before it (`machine.parts`)."""


def owned_nodes(surroundings: Surroundings, document: MachineDocument) -> list[Node]:
    """The nodes of all parts that `document` needs, or an earlier one needed."""
    nodes: list[Node] = []
    for name in KINDS:
        part = part_of(surroundings, document, name)
        if part is not None:
            nodes.extend(part.nodes(document))
    return nodes


def part_of(surroundings: Surroundings, document: MachineDocument, name: str) -> Part | None:
    """One part, if `document` needs it or an earlier one needed it."""
    machine, kind = surroundings.machine, KINDS[name]
    part = machine.parts.get(name)
    if part is None and kind.needed(document, machine.options):
        part = machine.parts[name] = _made(kind.path, surroundings)
    return part


def _made(path: str, surroundings: Surroundings) -> Part:
    module, _, name = path.partition(":")
    made = getattr(importlib.import_module(module), name)(surroundings)
    return cast("Part", made)
