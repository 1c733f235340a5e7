"""The request of a client for a shell, from `extra` of its first message. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from schema import ErrorKind, MachineError

DEFAULT_TERM: Final = "xterm-256color"
DEFAULT_SIZE: Final = (24, 80)  # rows, columns: of a VT100
WINDOW_CHANGE: Final = "window-change"  # message name, as in RFC 4254 6.7


@dataclass(frozen=True, slots=True)
class ShellRequest:
    """One shell: an interactive shell on a terminal, or `command` on pipes."""

    command: str = ""  # argument of the shell's -c; empty for an interactive shell
    directory: str = ""  # working directory
    environment: Mapping[str, str] = field(default_factory=dict)  # variables to add
    term: str = DEFAULT_TERM  # terminal type
    size: tuple[int, int] = DEFAULT_SIZE  # rows, columns


def read_request(extra: Mapping[str, Any] | None) -> ShellRequest:
    """Parse command, directory, environment, term, cols and rows of `extra`. MachineError (INVALID) if invalid."""
    options = dict(extra or {})
    environment = options.get("environment") or {}
    if not isinstance(environment, Mapping) or not all(
        isinstance(value, str) and name and "=" not in name and "\0" not in name + value
        for name, value in environment.items()
    ):
        raise MachineError("extra.environment is not a mapping of names to strings", kind=ErrorKind.INVALID)
    return ShellRequest(
        command=_text(options, "command"),
        directory=_text(options, "directory"),
        environment=dict(environment),
        term=_text(options, "term") or DEFAULT_TERM,
        size=read_size(options) or DEFAULT_SIZE,
    )


def read_size(message: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return rows and columns of a window; None if the message has neither. MachineError (INVALID) if invalid."""
    if "cols" not in message and "rows" not in message:
        return None
    return _count(message, "rows"), _count(message, "cols")


def _count(message: Mapping[str, Any], key: str) -> int:
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= 65535 or value != int(value):
        raise MachineError(f"extra.{key} is {value!r}, not a whole number from 1 to 65535", kind=ErrorKind.INVALID)
    return int(value)


def _text(message: Mapping[str, Any], key: str) -> str:
    value = message.get(key) or ""
    if not isinstance(value, str) or "\0" in value:
        raise MachineError(f"extra.{key} is {value!r}, not a string", kind=ErrorKind.INVALID)
    return value
