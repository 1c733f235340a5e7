"""Lists the packages of a document: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from schema.document import MachineDocument, Module, PackageSource

MODULE: Final = "module"

Key = tuple[str, str]
"""Type and name of a package."""


@dataclass(frozen=True, slots=True)
class ConfiguredPackage:
    """A package of a document."""

    kind: str
    name: str
    package_id: str  # its name in the entry: acme:smooth, organization/net
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
        return self.package_id, source.sha256, source.url, source.error


def configured_packages(document: MachineDocument) -> dict[Key, ConfiguredPackage]:
    """Return the packages of a document: those in `packages`, and the registry modules."""
    entries = [
        ConfiguredPackage(entry.type, entry.name, entry.package, path, entry.source)
        for entry, path in zip(document.packages, document.places("packages"), strict=True)
    ]
    entries += [
        ConfiguredPackage(MODULE, entry.name, entry.module_id, path, entry.source, entry)
        for entry, path in zip(document.modules, document.places("modules"), strict=True)
        if entry.type == "registry"
    ]
    return {entry.key: entry for entry in entries}
