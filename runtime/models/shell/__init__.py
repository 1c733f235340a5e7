"""The shell service: terminals and file transfer. Available only if configured."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:service:shell", "rdk:builtin:builtin"): "runtime.models.shell.service:BuiltinShell",
}
"""`(API, model)` -> `module:class`."""
