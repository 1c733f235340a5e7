"""Package entries: data that the cloud provides."""

from __future__ import annotations

import re
from typing import Final, Literal

from schema.errors import ConfigError
from schema.names import MAX_MODULE_NAME, check_name
from schema.section import Section

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class PackageSource(Section, frozen=True, kw_only=True):
    """The file that the cloud has found for a package, or why there is none."""

    package: str = ""
    """`namespace:name` in the registry."""
    version: str = ""
    """The version that was found."""
    url: str = ""
    """Where the archive is; without a host, at the cloud."""
    sha256: str = ""
    """Of the archive, in hexadecimal digits; without it nothing is used."""
    size: int = 0
    """Of the archive, in bytes."""
    error: str = ""
    """Why there is none."""

    def __post_init__(self) -> None:
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise ConfigError("sha256", "is no SHA-256", value=self.sha256, remedy="write 64 hexadecimal digits")


class Package(Section, frozen=True, kw_only=True):
    """Something to download: a model, a module, a map."""

    name: str
    """Unique among packages; letters, digits, '-' and '_', at most 200."""
    package: str
    """`organization/name`."""
    version: str = ""
    """Which version of it."""
    type: Literal["ml_model", "module", "slam_map", "archive"] = "ml_model"
    """What it holds."""
    source: PackageSource | None = None
    """Set by the cloud."""

    def __post_init__(self) -> None:
        check_name(self.name, path="name", limit=MAX_MODULE_NAME)
        if not self.package:
            raise ConfigError("package", "is empty", remedy="write organization/name")
