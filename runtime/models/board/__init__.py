"""The board of this computer: pins, PWM, analog inputs and interrupts."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:board", "rdk:builtin:linux"): "runtime.models.board.linux:LinuxBoard",
}
"""`(API, model)` -> `module:class`."""
