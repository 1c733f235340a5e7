"""Models that need nothing but the pins of a board."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {}
"""`(API, model)` -> `module:class`."""
