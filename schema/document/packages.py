"""Package entries: files that the cloud provides."""

from __future__ import annotations

import re
from typing import Final, Literal

from schema.document.section import Section
from schema.errors import ConfigError
from schema.names import MAX_MODULE_NAME, check_name

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class PackageSource(Section, frozen=True, kw_only=True):
    """Archive that the cloud provides for a package, or the reason why there is none."""

    package: str = ""
    """`namespace:name` in the registry."""
    version: str = ""
    """Version of the archive."""
    url: str = ""
    """URL of the archive; without a host, on the cloud."""
    sha256: str = ""
    """SHA-256 of the archive in hexadecimal; an archive without it is not used."""
    size: int = 0
    """Size of the archive in bytes."""
    error: str = ""
    """Reason why there is no archive."""

    def __post_init__(self) -> None:
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise ConfigError("sha256", "is not a SHA-256", value=self.sha256, remedy="write 64 hexadecimal digits")


class Package(Section, frozen=True, kw_only=True):
    """Download, such as a model, a module or a map."""

    name: str
    """Name, unique among packages: at most 200 letters, digits, '-' and '_'."""
    package: str
    """`organization/name`."""
    version: str = ""
    """Version of the package."""
    type: Literal["ml_model", "module", "slam_map", "archive"] = "ml_model"
    """Type of the content."""
    source: PackageSource | None = None
    """Archive of the package; set by the cloud."""

    def __post_init__(self) -> None:
        check_name(self.name, path="name", limit=MAX_MODULE_NAME)
        if not self.package:
            raise ConfigError("package", "is empty", remedy="write organization/name")
