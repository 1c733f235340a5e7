"""Unpacking of a release file: a shell script with a header, followed by a tar archive that is compressed with xz.

The archive begins after the line MARK. Its member `run` is the program; links must stay inside of the archive.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError
from support.files import sync_folder
from support.foreign import BadArchiveError, Bounds, NoSpaceError, erase, flush_tree, remove, unpack_apart_blocking

MARK: Final = b"\n__PAYLOAD__\n"
MAX_SCRIPT: Final = 16 * 1024
"""Bytes at the beginning of the file in which the line MARK ends."""
XZ: Final = b"\xfd7zXZ\0"
"""Bytes at the beginning of the archive."""
BOUNDS: Final = Bounds(
    entries=50_000,
    size=2 << 30,
    reserve=32 << 20,
    cpu=600,
    wall=590.0,  # a step of an update has 10 minutes
)


def unpack(file: Path, folder: Path) -> None:
    """Unpack a release file into a new folder, which exists complete and flushed to the disk, or not at all.

    Blocks. What an interrupted call has left is replaced. Owners are not kept; permissions are, except setuid, setgid
    and write access of others.

    Raises MachineError: INVALID if the file is not a release, is damaged, too large, or contains paths, links or
    devices that lead out of the folder; EXHAUSTED if the disk has too little space; FileExistsError if `folder` exists.
    """
    part = folder.with_name(f"{folder.name}.part")
    if folder.exists():
        raise FileExistsError(17, "the folder exists", str(folder))
    erase(part)
    try:
        unpack_apart_blocking(file, part, BOUNDS, begin=_begin(file))
        flush_tree(part)
        part.replace(folder)
    except BadArchiveError as error:
        raise _invalid(file, str(error)) from None
    except NoSpaceError as error:
        raise MachineError(
            f"the disk of {folder.parent} has {error.free >> 20} MiB free: too little to unpack a release",
            kind=ErrorKind.EXHAUSTED,
            remedy="free some space",
        ) from None
    finally:
        remove(part)  # what an error has left
    sync_folder(folder.parent)


def _begin(file: Path) -> int:
    """Return where the archive begins; MachineError (INVALID) if the file is not a release."""
    with open(file, "rb") as source:
        beginning = source.read(MAX_SCRIPT + len(XZ))
    end = beginning.find(MARK, 0, MAX_SCRIPT)
    if not beginning.startswith(b"#!") or end < 0:
        raise _invalid(file, f"it has no line {MARK.decode().strip()} in its first {MAX_SCRIPT >> 10} KiB")
    begin = end + len(MARK)
    if not beginning.startswith(XZ, begin):
        raise _invalid(file, "its archive is not compressed with xz")
    return begin


def _invalid(file: Path, reason: str) -> MachineError:
    return MachineError(
        f"{file.name} cannot be unpacked: {reason}", kind=ErrorKind.INVALID, remedy="build the release again"
    )
