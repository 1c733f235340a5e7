"""Parts of a machine other than resources and its port, such as jobs; imported when a machine needs them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from engine import Options, Part, PartContext
from nursery_graph import Node
from rpc.peers import engine_installed
from schema.document import MachineDocument

if TYPE_CHECKING:
    from runtime.parts.jobs.nodes import Jobs
    from runtime.parts.modules.manager import Modules
    from runtime.parts.packages.part import Packages
    from runtime.parts.remotes.manager import Remotes


@dataclass(frozen=True, slots=True)
class PartKind:
    """A kind of part: whether a machine needs it, and the path of its class."""

    needed: Callable[[MachineDocument, Options], bool]
    path: str  # module:Class


def _captures(document: MachineDocument, options: Options) -> bool:
    """Return whether the document configures data capture."""
    return any(entry.api.subtype == "data_manager" for entry in document.services) or any(
        config.type.endswith("data_manager") for entry in document.resources for config in entry.service_configs
    )


KINDS: Final[Mapping[str, PartKind]] = {
    "jobs": PartKind(lambda document, options: bool(document.jobs), "runtime.parts.jobs.nodes:Jobs"),
    "ftdc": PartKind(lambda document, options: options.ftdc, "runtime.parts.ftdc.recorder:Recorder"),
    "telemetry": PartKind(
        lambda document, options: options.output_telemetry or document.tracing.enabled,
        "runtime.parts.metrics.output:Telemetry",
    ),
    "network-check": PartKind(
        lambda document, options: document.cloud is not None, "runtime.parts.netcheck.background:NetworkChecks"
    ),
    "video": PartKind(
        lambda document, options: options.webrtc and engine_installed(), "runtime.parts.video.part:Video"
    ),
    "webrtc": PartKind(
        lambda document, options: options.webrtc and engine_installed(), "runtime.parts.webrtc.part:WebRtc"
    ),
    "cloud": PartKind(lambda document, options: document.cloud is not None, "runtime.parts.cloud.part:CloudPart"),
    "packages": PartKind(
        lambda document, options: (
            bool(document.packages) or any(module.type == "registry" for module in document.modules)
        ),
        "runtime.parts.packages.part:Packages",
    ),
    "modules": PartKind(lambda document, options: bool(document.modules), "runtime.parts.modules.manager:Modules"),
    "remotes": PartKind(lambda document, options: bool(document.remotes), "runtime.parts.remotes.manager:Remotes"),
    "mdns": PartKind(lambda document, options: options.mdns, "runtime.parts.mdns.part:Mdns"),
    "capture": PartKind(_captures, "runtime.parts.data.part:Captures"),
}
"""In the order of construction: a part may use those before it (`PartContext.parts`)."""


class Parts:
    """The parts that documents of one machine have needed so far, by their names in KINDS."""

    def __init__(self, options: Options) -> None:
        self.present: dict[str, Part] = {}
        self._options = options

    def nodes(self, context: PartContext, document: MachineDocument) -> list[Node]:
        """Return the nodes of all parts that `document` needs, or an earlier one needed."""
        nodes: list[Node] = []
        for name in KINDS:
            part = self.part_of(context, document, name)
            if part is not None:
                nodes.extend(part.nodes(document))
        return nodes

    def part_of(self, context: PartContext, document: MachineDocument, name: str) -> Part | None:
        """Return a part if `document` needs it or an earlier one needed it."""
        kind, part = KINDS[name], self.present.get(name)
        if part is None and kind.needed(document, self._options):
            part = self.present[name] = _constructed(kind.path, context)
        return part

    @property
    def jobs(self) -> Jobs | None:
        """The part for jobs; None on a machine that never had any."""
        return cast("Jobs | None", self.present.get("jobs"))

    @property
    def modules(self) -> Modules | None:
        """The part for modules; None on a machine that never had any."""
        return cast("Modules | None", self.present.get("modules"))

    @property
    def packages(self) -> Packages | None:
        """The part for packages; None on a machine that never had any."""
        return cast("Packages | None", self.present.get("packages"))

    @property
    def remotes(self) -> Remotes | None:
        """The part for remotes; None on a machine that never had any."""
        return cast("Remotes | None", self.present.get("remotes"))


def _constructed(path: str, context: PartContext) -> Part:
    module, _, name = path.partition(":")
    part: Part = getattr(importlib.import_module(module), name)(context)
    return part
