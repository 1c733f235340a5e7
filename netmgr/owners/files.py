"""Small files of other programs. The functions block."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError

MAX_FILE: Final = 256 * 1024
"""Bytes of a configuration file that are read."""


def read(path: Path) -> str:
    """Return the beginning of a text file; empty if it does not exist. UNAVAILABLE if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE).decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise _failed(path, "read", error) from None


def write(path: Path, text: str) -> None:
    """Replace a text file, with its folders. UNAVAILABLE if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_text(text)
        part.replace(path)
    except OSError as error:
        raise _failed(path, "written", error) from None


def remove(path: Path) -> None:
    """Delete a file, if it exists. UNAVAILABLE if it cannot be deleted."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _failed(path, "deleted", error) from None


def _failed(path: Path, action: str, error: OSError) -> MachineError:
    return MachineError(
        f"{path} cannot be {action}: {error.strerror}", kind=ErrorKind.UNAVAILABLE, remedy="check its permissions"
    )
