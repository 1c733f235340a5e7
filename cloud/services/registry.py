"""The registry: modules, models and training scripts by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloud.services.base import Rule, Service

RULES: Final[Mapping[str, Rule]] = {}


class Registry(Service):
    """The registry: modules, models and training scripts by name."""
