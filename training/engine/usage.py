"""Measurement and packing of folders that a program wrote and that may contain anything. Blocking."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn

from schema import ErrorKind, MachineError
from support.foreign import MovedError, folder_entries, walk

ATTEMPTS: Final = 5  # to count folders that change meanwhile
TEMPORARY: Final = "tmp"  # folder in the output that is not part of the model, as published
NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})


class UnmeasuredError(Exception):
    """A folder could not be read, so nobody knows what is in it."""


def usage(folders: Iterable[Path], most: int) -> tuple[int, int]:
    """Return bytes on disk and number of entries in folders; stop counting above `most` entries.

    Folders of any depth count. UnmeasuredError if one cannot be read, or all of them change all the time.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _usage(folders, most)
        except (FileNotFoundError, MovedError):
            continue  # a folder was deleted or moved meanwhile
        except OSError as error:
            raise UnmeasuredError(error.strerror or str(error)) from error
    try:
        return _usage(folders, most)
    except OSError as error:
        raise UnmeasuredError(error.strerror or str(error)) from error


def _usage(folders: Iterable[Path], most: int) -> tuple[int, int]:
    size = count = 0
    for folder in folders:
        try:
            os.lstat(folder)
        except FileNotFoundError:
            continue
        for entry in folder_entries(folder):
            count += 1
            if count > most:
                return size, count
            try:
                facts = os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
            except FileNotFoundError:
                continue  # it was deleted meanwhile
            names = facts.st_nlink if stat.S_ISREG(facts.st_mode) else 1
            size += facts.st_blocks * 512 // max(1, names)  # a file with several names counts once
    return size, count


def memory(leader: int) -> int:
    """Return the bytes of memory of a process and all its descendants; shared pages count in parts."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                status = Path("/proc", name, "stat").read_bytes()
            except OSError:
                continue  # it has just ended
            # proc(5): pid (name) state parent ...; the name may contain any character, even parentheses
            children.setdefault(int(status.rpartition(b")")[2].split()[1]), []).append(int(name))
    size, pending = 0, [leader]
    while pending:
        process = pending.pop()
        pending += children.get(process, ())
        try:
            lines = Path("/proc", str(process), "smaps_rollup").read_text().splitlines()
        except PermissionError:  # a process that nobody may look into: all that it has counts, with what it shares
            size += _resident(process)
            continue
        except OSError:
            continue  # it has just ended
        size += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return size


def _resident(process: int) -> int:
    try:
        return int(Path("/proc", str(process), "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def pack_folder(folder: Path, archive: Path, max_bytes: int, added: Mapping[str, bytes] = NOTHING) -> int:
    """Write the regular files of `folder` to a .tar.gz; return their number.

    If there is any, the files `added` are written, too, in place of those with the same names.
    PRECONDITION for anything that is not a regular file or folder: following a link would publish files of this
    computer. EXHAUSTED if the content exceeds `max_bytes`.
    """
    count = size = 0
    with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
        for path in sorted(_files(folder)):
            name = os.path.relpath(path, folder)
            if name.split(os.sep)[0] in (TEMPORARY, *added):
                continue
            descriptor = -1
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                facts = os.fstat(descriptor)
                regular = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1
            except OSError:
                regular, facts = False, None
            try:
                if not regular or facts is None:
                    raise MachineError(
                        f"the output has {name[:200]!r}, which is not a regular file",
                        kind=ErrorKind.PRECONDITION,
                        remedy="write only files and folders, without links",
                    )
                size += facts.st_size
                if size > max_bytes:
                    raise MachineError(
                        f"the output is larger than {max_bytes / 1024**2:g} MiB",
                        kind=ErrorKind.EXHAUSTED,
                        remedy="write a smaller model, or start machine-cloud with a larger --max-package",
                    )
                info = tarfile.TarInfo(name)
                info.size, info.mode, info.mtime = facts.st_size, 0o644, int(facts.st_mtime)
                with os.fdopen(descriptor, "rb") as content:
                    descriptor = -1
                    tar.addfile(info, content)
            finally:
                if descriptor >= 0:
                    os.close(descriptor)
            count += 1
        for name, text in added.items() if count else ():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(text), 0o644, int(time.time())
            tar.addfile(info, io.BytesIO(text))
    return count


def _files(folder: Path) -> Iterator[str]:
    """Yield the path of everything below a folder that is not a folder. PRECONDITION if one cannot be read."""

    def refuse(error: OSError) -> NoReturn:
        raise MachineError(
            f"a folder of the output cannot be read: {error.strerror}",
            kind=ErrorKind.PRECONDITION,
            remedy="write fewer levels of folders, with permission to read them",
        ) from error

    for at, folders, others in walk(folder, onerror=refuse):
        yield from (str(at / name) for name in others)
        yield from (path for name in folders if os.path.islink(path := str(at / name)))
