"""Models of serial, USB, video and input devices."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {}
"""`(API, model)` -> `module:class`."""
