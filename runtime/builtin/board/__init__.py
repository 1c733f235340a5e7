"""Boards of this computer and of converters: pins, PWM, analogs, interrupts."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {}
"""`(API, model)` -> `module:class`."""
