"""Table of the models of data services."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:service:data_manager", "rdk:builtin:builtin"): "runtime.parts.data.manager:BuiltinDataManager",
}
"""`(API, model)` -> `module:class`."""
