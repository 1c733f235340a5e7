"""Boards of this computer and of converters: pins, PWM, analogs, interrupts."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:board", "rdk:builtin:linux"): "runtime.builtin.board.linux:LinuxBoard",
}
"""`(API, model)` -> `module:class`."""
