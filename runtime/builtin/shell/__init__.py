"""The shell service: terminals and files, off unless configured."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:service:shell", "rdk:builtin:builtin"): "runtime.builtin.shell.service:BuiltinShell",
}
"""`(API, model)` -> `module:class`."""
