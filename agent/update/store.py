"""The file of a record, with a copy of the previous one. All functions block: call them in a worker."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from agent.update.record import InvalidRecord, UpdateRecord, decode, encode
from schema import ErrorKind, MachineError
from support.files import replace_file

COPY: Final = ".previous"
"""Suffix of the copy: the record that was stored before."""


class Loaded(NamedTuple):
    """What `load` read: the record, None if there never was one; a report if only the copy could be used."""

    record: UpdateRecord | None
    report: str = ""


def save(path: Path, record: UpdateRecord) -> None:
    """Replace the record atomically and durably, readable only by its owner. What was stored before becomes the copy.

    Raises OSError; then the previous record is still in the file or in the copy.
    """
    try:
        previous = path.read_bytes()
        decode(previous)
    except (OSError, InvalidRecord):
        pass  # there is none, or it is damaged and must not replace a good copy
    else:
        replace_file(path.with_name(path.name + COPY), previous)
    replace_file(path, encode(record))


def load(path: Path) -> Loaded:
    """Return the record in the file or, if the file cannot be used, in its copy.

    Raises MachineError if there are files and none can be used.
    """
    problems: list[str] = []
    exists = False
    for place in (path, path.with_name(path.name + COPY)):
        try:
            return Loaded(decode(place.read_bytes()), "; ".join(problems))
        except FileNotFoundError:
            problems.append(f"{place} does not exist")
            continue
        except OSError as error:
            problems.append(f"{place} cannot be read: {error.strerror}")
        except InvalidRecord as error:
            problems.append(f"{place}: {error}")
        exists = True
    if not exists:
        return Loaded(None)
    raise MachineError(
        "; ".join(problems),
        kind=ErrorKind.PRECONDITION,
        remedy="restore one of the files, or install the program again",
    )
