"""Processes of this computer by their command lines, for tests that look for what others have started."""

from collections.abc import Iterator
from pathlib import Path


def command_lines() -> Iterator[tuple[int, bytes]]:
    """Yield the id and the command line of each process, without those that end meanwhile.

    The words of a command line are separated by null bytes, see proc(5). It is empty for a kernel thread and for a
    process that has ended and was not waited for.
    """
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue


def running(*texts: object) -> list[int]:
    """Return the ids of the processes whose command lines contain each of these texts, in ascending order."""
    parts = [str(text).encode() for text in texts]
    return sorted(process for process, command in command_lines() if all(part in command for part in parts))
