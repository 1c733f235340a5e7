"""Module archives: a `.tgz` with a `meta.json`, unpacked once per content.

Archives are not trusted: `support.foreign` unpacks them in a process of its own. An archive is unpacked next to its
final folder, which is renamed into place when everything is written to disk. So an existing folder is always complete,
even after a power failure. Functions that are not async block: call them in a worker.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

import structlog
import trio

from runtime.programs.command import Program
from schema import ErrorKind, MachineError
from support import Worker
from support.files import private
from support.foreign import BadArchiveError, Bounds, erase, remove, unpack_apart
from support.foreign import unpack as unpack_archive
from uplink import digest_of

META: Final = "meta.json"
MAX_META: Final = 1 << 20  # bytes
BOUNDS: Final = Bounds(
    entries=200_000,  # a Python environment with packages has about 20,000
    size=8 * 1024**3,  # a module with neural network libraries has about 4 GiB
    cpu=1800,
    wall=7200.0,
)
CLEANUP: Final = 5.0  # seconds to remove what a cancelled installation has unpacked; the next one removes the rest
_DIGITS: Final = 16  # hexadecimal digits of the digest in the folder's name: 64 bits
_UNFINISHED: Final = ".unpacking"
_REMOVED: Final = ".removed"  # not part of the name of another module: module names have no dots
MARKER: Final = ".first_run_succeeded"  # suffix of a file next to the folder; part of the protocol

_log: structlog.stdlib.BoundLogger = structlog.get_logger("modules.archives")


def folder_of(packages: Path, name: str, digest: str) -> Path:
    """Return the folder for the archive of a module with this digest."""
    return packages / f"{name}-{digest[:_DIGITS]}"


def marker_of(folder: Path) -> Path:
    """Return the path of the file that marks that the first_run program of `folder` has succeeded."""
    return folder.with_name(folder.name + MARKER)


async def prepare(archive: Path, packages: Path, name: str, worker: Worker) -> Program:
    """Unpack an archive unless its content is already unpacked, and return the program in its meta.json.

    Raises MachineError, which names the archive and member, if it is not an archive, is unsafe or has no entrypoint. In
    this case, and if it is cancelled, unpacked files are removed. `worker` must be open.
    """
    ended = trio.Event()
    try:
        folder = folder_of(packages, name, await worker.run(partial(digest_of, archive, ended.is_set)))
    finally:
        ended.set()
    if not await worker.run(folder.is_dir):
        await unpack(archive, folder, worker, module=True)
    return await worker.run(partial(read_meta, archive, folder))


async def unpack(archive: Path, folder: Path, worker: Worker, *, module: bool) -> None:
    """Unpack an archive into a new folder, which appears complete and written to disk, or not at all.

    Raises MachineError, also if a `module` has no usable meta.json.
    """
    unfinished = folder.with_name(folder.name + _UNFINISHED)
    try:
        with _explained(archive):
            await worker.run(partial(private.make_folder, folder.parent))
            await worker.run(partial(erase, unfinished))
            await unpack_apart(archive, unfinished, BOUNDS)
            if module:
                await worker.run(partial(read_meta, archive, unfinished))
            await worker.run(os.sync)  # once for all files: fsync for each of thousands takes minutes on a memory card
            await worker.run(partial(os.replace, unfinished, folder))
    finally:
        with trio.move_on_after(CLEANUP, shield=True):
            await worker.run(partial(remove, unfinished, seconds=CLEANUP / 2))


def unpack_here(archive: Path, folder: Path) -> None:
    """Unpack an archive of the user of this program into a new folder, in this process. Raises MachineError."""
    with _explained(archive), archive.open("rb") as source:
        unpack_archive(source, folder, BOUNDS)


@contextmanager
def _explained(archive: Path) -> Iterator[None]:
    """Raise MachineError, which names the archive, for what is wrong with it, or with the disk."""
    try:
        yield
    except BadArchiveError as error:
        raise MachineError(
            f"{archive} is not unpacked: {error}",
            kind=ErrorKind.PRECONDITION,
            remedy="build the archive with only folders, regular files, and links within the archive",
        ) from None
    except OSError as error:
        raise MachineError(f"{archive} cannot be unpacked: {error}", kind=ErrorKind.PRECONDITION) from error


def remove_others(packages: Path, name: str, keep: Path | None) -> None:
    """Remove the folders of a module's other archives, or of all its archives if `keep` is None."""
    if not packages.is_dir():
        return
    for entry in packages.iterdir():
        stem = entry.name.removesuffix(MARKER).removesuffix(_UNFINISHED)
        digest = stem.removeprefix(f"{name}-")
        if stem == name or len(digest) != _DIGITS or digest == stem or not set(digest) <= set("0123456789abcdef"):
            continue
        if keep is not None and entry in (keep, marker_of(keep)):
            continue
        remove_tree(entry)


def read_meta(archive: Path, folder: Path) -> Program:
    """Return the entrypoint and the first_run program in meta.json; both must be executable and inside the folder."""
    try:
        with (folder / META).open("rb") as file:
            text = file.read(MAX_META + 1)
        if len(text) > MAX_META:
            raise ValueError(f"it has more than {MAX_META >> 10} KiB")
        meta = json.loads(text)
    except FileNotFoundError:
        raise _unusable(archive, f"has no {META}", 'add one: {"entrypoint": "run.sh"}') from None
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(archive, f"has a {META} that cannot be read: {error}", "write it as JSON") from None
    if not isinstance(meta, dict) or not isinstance(meta.get("entrypoint"), str) or not meta["entrypoint"]:
        raise _unusable(archive, f"has a {META} without entrypoint", 'name the program: {"entrypoint": "run.sh"}')
    first_run = meta.get("first_run") or ""
    if not isinstance(first_run, str):
        raise _unusable(
            archive, f"has a {META} whose first_run is not a string", "use the path of a program in the archive"
        )
    entrypoint = _program(archive, folder, meta["entrypoint"], "entrypoint")
    return Program(entrypoint, folder, _program(archive, folder, first_run, "first_run") if first_run else None)


def _program(archive: Path, folder: Path, name: str, key: str) -> Path:
    path = folder / _path_inside(archive, name)
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that lead to each other
        inside = False
    if not inside or not path.is_file():
        raise _unusable(archive, f"does not contain its {key} {name!r}", f"correct {key} in {META}")
    if not os.access(path, os.X_OK):
        raise _unusable(archive, f"contains its {key} {name!r}, which is not executable", f"chmod +x {name}")
    return path


def _path_inside(archive: Path, name: str) -> PurePosixPath:
    """Return a path in meta.json; raises MachineError if it leads out of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise _unusable(archive, f"names {name!r}, which leads out of its folder", f"correct {META}")
    return path


def _unusable(archive: Path, reason: str, remedy: str) -> MachineError:
    return MachineError(f"{archive} {reason}", kind=ErrorKind.PRECONDITION, remedy=remedy)


def remove_tree(path: Path) -> None:
    """Remove a file or a folder and its contents as far as permitted, without following links; log what is left."""
    if not (removal := remove(path)).complete:
        _log.warning("files of a module are left on the disk", reason=str(removal))


def rename_for_removal(folder: Path) -> None:
    """Rename a folder, if it exists, to a free name, which `remove_renamed` recognizes."""
    if not folder.is_dir() or folder.is_symlink():
        return
    number, target = 1, folder.with_name(f"{folder.name}{_REMOVED}")
    while os.path.lexists(target):
        number += 1
        target = folder.with_name(f"{folder.name}{_REMOVED}-{number}")
    folder.rename(target)


def remove_renamed(folder: Path) -> None:
    """Remove what `rename_for_removal` has renamed, including the remains of interrupted removals."""
    for renamed in folder.parent.glob(f"{folder.name}{_REMOVED}*"):
        remove_tree(renamed)
