"""Fragments: configuration that many machines share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloud.services.base import Rule, Service

RULES: Final[Mapping[str, Rule]] = {}


class Fragments(Service):
    """Fragments: configuration that many machines share."""
