"""Lists the packages of a document: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from schema.document.machine import MachineDocument
from schema.document.modules import Module
from schema.document.packages import PackageSource

MODULE: Final = "module"

Key = tuple[str, str]
"""Type and name of a package."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A package of a document."""

    kind: str
    name: str
    named: str  # its name in the entry: acme:smooth, organization/net
    path: str  # of its entry: modules.0
    source: PackageSource | None
    module: Module | None = None  # the entry, for a registry module

    @property
    def key(self) -> Key:
        """Type and name, which are unique in a document."""
        return self.kind, self.name

    @property
    def version(self) -> tuple[object, ...]:
        """A value that changes when the package must be installed again."""
        source = self.source or PackageSource()
        return self.named, source.sha256, source.url, source.error


def wanted_of(document: MachineDocument) -> dict[Key, Wanted]:
    """Return the packages of a document: those in `packages`, and the registry modules."""
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
