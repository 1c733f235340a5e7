"""Label files: one label per line; the line number, from 0, is the class. Pure, except for `read`."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError

_LINE_END: Final = re.compile(r"\r\n|\n|\r")  # str.splitlines would also divide a label at U+2028 or U+0085
LARGEST: Final = 4 * 1024 * 1024  # bytes of a label file


def parse(text: str) -> tuple[str, ...]:
    """Return the labels in order, without empty lines at the end."""
    lines = _LINE_END.split(text.removeprefix("\ufeff").rstrip())  # without a byte order mark
    return tuple(line.strip() for line in lines) if lines != [""] else ()


def read(path: str) -> tuple[str, ...]:
    """Return the labels of a file. MachineError (PRECONDITION) if it is unreadable, empty or too large."""
    file = Path(path).expanduser()
    try:
        if file.stat().st_size > LARGEST:
            raise MachineError(f"{file} has more than {LARGEST} bytes", kind=ErrorKind.PRECONDITION)
        labels = parse(file.read_text())
    except OSError as error:
        raise _unreadable(file, str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(file, "it is not UTF-8 text") from error
    if not labels:
        raise _unreadable(file, "it is empty")
    return labels


def _unreadable(file: Path, reason: str) -> MachineError:
    return MachineError(
        f"label file {file}: {reason}", kind=ErrorKind.PRECONDITION, remedy="use a text file with one label per line"
    )


def of_names(text: str) -> tuple[str, ...]:
    """Parse labels that Ultralytics writes into a model: `{0: 'person', 1: 'bicycle'}`. Empty if not in this form."""
    try:
        names = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    if not isinstance(names, dict) or not all(isinstance(key, int) and 0 <= key < 1_000_000 for key in names):
        return ()
    return tuple(str(names.get(index, index)) for index in range(max(names, default=-1) + 1))


def label(labels: Sequence[str], index: int) -> str:
    """Return the label of a class, or its number if it has no label."""
    return labels[index] if 0 <= index < len(labels) and labels[index] else str(index)
