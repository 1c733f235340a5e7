"""The identity of a release file: which program, version and platform its header names.

The header can be forged: verify the hash of the file before it is executed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError
from uplink.releases import MAX_HEADER, Header, read_header

_KINDS: Final[Mapping[type[OSError], ErrorKind]] = {
    FileNotFoundError: ErrorKind.NOT_FOUND,
    IsADirectoryError: ErrorKind.INVALID,
}


def read_identity(path: Path) -> Header:
    """Return the header of the release file `path`. Blocks while it reads at most MAX_HEADER bytes.

    Raises MachineError, with the path in its message: NOT_FOUND if the file does not exist, INVALID if it is not a
    regular file or has no valid header, PRECONDITION if it cannot be read.
    """
    try:
        with open(path, "rb", opener=_open) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MachineError(f"{path} is not a regular file", kind=ErrorKind.INVALID)
            beginning = file.read(MAX_HEADER)
    except OSError as error:
        kind = _KINDS.get(type(error), ErrorKind.PRECONDITION)
        raise MachineError(f"{path} cannot be read: {error.strerror}", kind=kind) from None
    try:
        return read_header(beginning)
    except MachineError as error:
        raise MachineError(f"{path}: {error.message}", kind=error.kind, remedy=error.remedy) from None


def check_identity(header: Header, expected: Header) -> None:
    """Raise MachineError (INVALID) that names all differences if a file is not the expected release. Pure."""
    differences = [
        f"its {field} is {getattr(header, field)} instead of {getattr(expected, field)}"
        for field in Header.__struct_fields__
        if getattr(header, field) != getattr(expected, field)
    ]
    if differences:
        raise MachineError(
            f"the file is another release: {', '.join(differences)}",
            kind=ErrorKind.INVALID,
            remedy="publish the release again with the right program, version and platform",
        )


def _open(path: str, flags: int) -> int:
    """Open without waiting: opening a named pipe otherwise waits for its writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
