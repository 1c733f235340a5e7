"""Package entries: data that the cloud provides."""

from __future__ import annotations

from typing import Literal

from schema.errors import ConfigError
from schema.names import MAX_MODULE_NAME, check_name
from schema.section import Section


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

    def __post_init__(self) -> None:
        check_name(self.name, path="name", limit=MAX_MODULE_NAME)
        if not self.package:
            raise ConfigError("package", "is empty", remedy="write organization/name")
