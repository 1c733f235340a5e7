"""Files of the micro server: its configuration, and what it keeps of the cloud's."""

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FILE = 32768


class BadFile(Exception):
    """A file is missing or not valid; the text says which and why."""


def read_json(path: str) -> "dict[str, Any]":
    """Read an object from a file."""
    try:
        if os.stat(path)[6] > MAX_FILE:
            raise BadFile(f"{path} is longer than {MAX_FILE} bytes")
        with open(path) as file:
            value = json.load(file)
    except OSError:
        raise BadFile(f"{path} cannot be read") from None
    except (ValueError, MemoryError):
        raise BadFile(f"{path} is not valid JSON, or too large for the memory") from None
    if not isinstance(value, dict):
        raise BadFile(f"{path} does not contain an object")
    return value


def write_text(path: str, text: str) -> None:
    """Replace a file: after a power cut it has its old or its new content."""
    other = path + ".new"
    with open(other, "w") as file:
        file.write(text)
        file.flush()
    if hasattr(os, "sync"):
        os.sync()
    os.rename(other, path)


def changed(path: str) -> int:
    """Return the time of the last change of a file, 0 if there is none."""
    try:
        return int(os.stat(path)[8])
    except OSError:
        return 0
