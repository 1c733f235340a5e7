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
            text = file.read()
        if not is_complete(text):
            raise ValueError
        value = json.loads(text)
    except OSError:
        raise BadFile(f"{path} cannot be read") from None
    except (ValueError, MemoryError):
        raise BadFile(f"{path} is not valid JSON, or too large for the memory") from None
    if not isinstance(value, dict):
        raise BadFile(f"{path} does not contain an object")
    return value


def is_complete(text: str) -> bool:
    """Return whether all brackets of a JSON text are closed: MicroPython also reads the beginning of a text."""
    depth = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
    return depth == 0 and not quoted and text.rstrip()[-1:] == "}"


def write_text(path: str, text: str) -> None:
    """Replace a file: after a power cut it has its old or its new content."""
    other = path + ".new"
    with open(other, "w") as file:
        file.write(text)
        file.flush()
    if hasattr(os, "sync"):
        os.sync()
    os.rename(other, path)


def changed(path: str) -> "tuple[int, int]":
    """Return time and size of a file, by which a change is noticed; zeros if there is none."""
    try:
        status = os.stat(path)
        return int(status[8]), int(status[6])
    except OSError:
        return 0, 0
