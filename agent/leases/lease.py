"""The file of a lease: its name, its content, and how long it counts. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 24 * 3600.0
"""Seconds after which a lease ends at the latest. A program that has crashed must not keep a device from security
updates for longer than a day; one that still works renews its lease."""

MAX_BYTES: Final = 1024
MAX_NOTE: Final = 200
FORMAT: Final = "write the end of the lease in seconds since 1970, such as `date -d '+10 min' +%s` prints"
PART: Final = ".part"
"""Suffix of files that are being written; they are ignored, and so are those that begin with a dot."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)


@dataclass(frozen=True)
class LeaseContent:
    """What a program wrote: the end in seconds since 1970, and a note for people."""

    end: float
    note: str = ""


def is_name(name: str) -> bool:
    """Return whether a lease can have this name."""
    return _NAME.fullmatch(name) is not None and not name.endswith(PART)


def is_ignored(name: str) -> bool:
    """Return whether a file with this name is being written, and not a lease yet."""
    return name.startswith(".") or name.endswith(PART)


def parse(data: bytes) -> LeaseContent:
    """Return the content of a lease: a line with the end, and optionally one with a note. ValueError for others."""
    lines = data.decode("utf-8", "replace").splitlines()
    first = lines[0].strip() if lines else ""
    if len(data) > MAX_BYTES or not _SECONDS.fullmatch(first):
        raise ValueError(f"its first line is {first[:40]!r}" if first else "it is empty")
    note = "".join(character for character in " ".join(lines[1:2]) if character.isprintable())
    return LeaseContent(float(first), note.strip()[:MAX_NOTE])


def encode(content: LeaseContent) -> bytes:
    """Return the content of a file."""
    note = " ".join(content.note.split())[:MAX_NOTE]
    return f"{content.end:.0f}\n{note}\n".encode() if note else f"{content.end:.0f}\n".encode()


def counted_end(end: float, changed: float) -> float:
    """Return when a lease ends that its file says ends at `end`, and that was `changed` then; seconds since 1970."""
    return min(end, changed + LONGEST)
