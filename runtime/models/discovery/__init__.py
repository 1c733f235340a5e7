"""Discovery of hardware connected to this computer."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:service:discovery", "rdk:builtin:hardware"): "runtime.models.discovery.hardware:HardwareDiscovery",
}
"""`(API, model)` -> `module:class`."""
