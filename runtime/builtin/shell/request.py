"""What a client asks a shell for, in `extra` of its first message. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from schema.errors import ErrorKind, MachineError

DEFAULT_TERM: Final = "xterm-256color"
DEFAULT_SIZE: Final = (24, 80)  # rows, columns: of a VT100
WINDOW_CHANGE: Final = "window-change"  # word of the wire, as in RFC 4254 6.7


@dataclass(frozen=True, slots=True)
class ShellRequest:
    """One shell: on a terminal without `command`, otherwise that command on pipes."""

    command: str = ""  # for the shell's -c
    directory: str = ""  # to start in
    environment: Mapping[str, str] = field(default_factory=dict)  # added
    term: str = DEFAULT_TERM  # kind of terminal
    size: tuple[int, int] = DEFAULT_SIZE  # rows, columns


def read_request(extra: Mapping[str, Any] | None) -> ShellRequest:
    """From `extra`: command, directory, environment, term, cols, rows. MachineError (INVALID) names what is wrong."""
    given = dict(extra or {})
    environment = given.get("environment") or {}
    if not isinstance(environment, Mapping) or not all(
        isinstance(value, str) and name and "=" not in name and "\0" not in name + value
        for name, value in environment.items()
    ):
        raise MachineError("extra.environment is not a mapping of names to texts", kind=ErrorKind.INVALID)
    return ShellRequest(
        command=_text(given, "command"),
        directory=_text(given, "directory"),
        environment=dict(environment),
        term=_text(given, "term") or DEFAULT_TERM,
        size=read_size(given) or DEFAULT_SIZE,
    )


def read_size(message: Mapping[str, Any]) -> tuple[int, int] | None:
    """Rows and columns of a window; None if the message has none. MachineError (INVALID) for impossible ones."""
    if "cols" not in message and "rows" not in message:
        return None
    return _count(message, "rows"), _count(message, "cols")


def _count(message: Mapping[str, Any], key: str) -> int:
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= 65535 or value != int(value):
        raise MachineError(f"extra.{key} is {value!r}, not 1 to 65535", kind=ErrorKind.INVALID)
    return int(value)


def _text(message: Mapping[str, Any], key: str) -> str:
    value = message.get(key) or ""
    if not isinstance(value, str) or "\0" in value:
        raise MachineError(f"extra.{key} is {value!r}, not a text", kind=ErrorKind.INVALID)
    return value
