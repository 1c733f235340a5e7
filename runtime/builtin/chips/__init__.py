"""Models of chips on I2C and SPI buses."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {}
"""`(API, model)` -> `module:class`."""
