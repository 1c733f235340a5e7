"""Which packages a document wants: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from schema.machine import MachineDocument
from schema.modules import Module
from schema.packages import PackageSource

MODULE: Final = "module"

Key = tuple[str, str]
"""Type and name of a package; the folder of its type holds it under its name."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One package of a document."""

    kind: str
    name: str
    named: str  # what the entry calls it: acme:smooth, organization/net
    path: str  # where its entry stands: modules.0
    source: PackageSource | None
    module: Module | None = None  # the entry of a module of the registry

    @property
    def key(self) -> Key:
        """Unique in a document."""
        return self.kind, self.name

    @property
    def version(self) -> tuple[object, ...]:
        """Equal if the same is to be done."""
        source = self.source or PackageSource()
        return self.named, source.sha256, source.url, source.error


def wanted_of(document: MachineDocument) -> dict[Key, Wanted]:
    """The packages of a document: those of `packages`, and the modules of the registry."""
    entries = [
        Wanted(one.type, one.name, one.package, path, one.source)
        for one, path in zip(document.packages, document.places("packages"), strict=True)
    ]
    entries += [
        Wanted(MODULE, one.name, one.module_id, path, one.source, one)
        for one, path in zip(document.modules, document.places("modules"), strict=True)
        if one.type == "registry"
    ]
    return {one.key: one for one in entries}
