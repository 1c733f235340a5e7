"""Backup and restore of a cloud with its own database: one archive with a copy of the database and its files.

The database is copied first, as a consistent snapshot while the cloud runs, then the files. A file is written to disk
before a row refers to it, so all files that the copy refers to exist, except those deleted during the backup. Files in
a bucket are not copied: the archive only records their location.
"""

from __future__ import annotations

import os
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cloud.blobs.folder import write_stamp
from cloud.blobs.s3_location import BucketLocation
from cloud.domain.upkeep.identity import of, written
from cloud.store import soundness
from cloud.store.migrations import STEPS
from cloud.store.sqlite import SqliteHandle, opened_exclusively
from schema import ErrorKind, MachineError
from support.files import sync_folder
from support.foreign import PIECE, Archive, BadArchiveError, Bounds, MemberKind, erase, remove

DATABASE: Final = "cloud.db"
FILES: Final = "files"
BOUNDS: Final = Bounds(entries=1 << 32, size=1 << 60)  # of a backup, which may have any size
LOCATION_ENTRY: Final = "files-are-in"  # name of the entry that replaces the files: one line with the bucket


def backup(database: Path, files: Path | BucketLocation, target: Path) -> tuple[int, int]:
    """Write the database and files to a new tar archive, readable by its owner only; return its size and file count.

    Raises MachineError if the database is missing, `target` exists, or the copy is damaged. An incomplete archive is
    removed.
    """
    if not database.is_file():
        raise MachineError(
            f"there is no database {database}", kind=ErrorKind.NOT_FOUND, remedy="set --data to the cloud's folder"
        )
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise MachineError(
            f"{target} already exists", kind=ErrorKind.EXISTS, remedy="choose another file name"
        ) from None
    except OSError as error:
        raise MachineError(f"{target} cannot be written: {error.strerror}", kind=ErrorKind.PERMISSION) from error
    try:
        with open(descriptor, "wb") as output, _temporary_folder(target) as folder:
            copy = folder / DATABASE
            with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as destination:
                source.backup(destination)
            check(copy)
            count = 0
            with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
                archive.add(copy, DATABASE)
                if isinstance(files, BucketLocation):
                    (folder / LOCATION_ENTRY).write_text(f"{files}\n")
                    archive.add(folder / LOCATION_ENTRY, LOCATION_ENTRY)
                for path in sorted(files.glob("??/*")) if isinstance(files, Path) else ():
                    with suppress(FileNotFoundError):  # deleted during the backup
                        if not path.suffix:
                            archive.add(path, f"{FILES}/{path.parent.name}/{path.name}", recursive=False)
                            count += 1
            output.flush()
            os.fsync(output.fileno())
    except BaseException as error:
        target.unlink()
        if isinstance(error, OSError):
            raise MachineError(f"{target} cannot be written: {error}", kind=ErrorKind.UNAVAILABLE) from error
        raise
    return target.stat().st_size, count


def check(file: Path) -> None:
    """Raise MachineError unless `file` is an intact cloud database of a version that this program supports."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            verdict, version = soundness.check_whole(connection), soundness.version_of(connection)
    except sqlite3.Error as error:
        raise MachineError(f"{file} is not a backup of a cloud: {error}", kind=ErrorKind.PRECONDITION) from error
    if verdict != "ok" or not version:
        raise MachineError(f"{file} is not a backup of a cloud, or is damaged: {verdict}", kind=ErrorKind.PRECONDITION)
    if version > len(STEPS):
        raise MachineError(
            f"{file} has a newer version ({version}) than this program ({len(STEPS)})",
            kind=ErrorKind.PRECONDITION,
            remedy="restore it with the newer machine-cloud",
        )


def restore(file: Path, database: Path, files: Path | BucketLocation) -> list[Path]:
    """Replace the database and files with those of a backup; return the paths to which the previous ones were renamed.

    No machine-cloud may run on the database. Raises MachineError if one does, if `file` is not a complete backup, or if
    its files are in a bucket and `files` is a folder or vice versa; nothing has changed then.
    """
    folder = files if isinstance(files, Path) else database.with_name(FILES)
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = database.with_name(database.name + ".restoring")
    new_files = folder.with_name(folder.name + ".restoring")
    new.unlink(missing_ok=True)
    erase(new_files)
    try:
        _same_kind(file, _unpack(file, new, new_files), new_files, files)
        check(new)
        _mark_files(new, new_files)
        if database.exists():
            _require_unused(database)
    except BaseException:
        new.unlink(missing_ok=True)
        remove(new_files)
        raise
    renamed = []
    if isinstance(files, BucketLocation):
        erase(new_files)
    for current, restored in ((database, new), (folder, new_files)) if isinstance(files, Path) else ((database, new),):
        if current.exists():
            number = 1
            while (previous := current.with_name(f"{current.name}.before-restore-{number}")).exists():
                number += 1
            current.replace(previous)
            renamed.append(previous)
        restored.replace(current)
        sync_folder(current.parent)
    return renamed


def _mark_files(database: Path, files: Path) -> None:
    """Mark the restored files with the id of the restored database. Without an id, its next start marks them."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        identity = of(SqliteHandle(connection))
    if identity is not None:
        write_stamp(files, written(identity), replace=True)


def _same_kind(file: Path, location: str, unpacked: Path, files: Path | BucketLocation) -> None:
    if location and isinstance(files, Path):
        raise MachineError(
            f"{file} does not contain the files: they are in {location}",
            kind=ErrorKind.PRECONDITION,
            remedy="restore it with --files s3://...; `machine-cloud files copy` then copies them to a folder",
        )
    if isinstance(files, BucketLocation) and any(unpacked.iterdir()):
        raise MachineError(
            f"{file} contains files, but --files is a bucket",
            kind=ErrorKind.PRECONDITION,
            remedy="restore it to a folder, then copy the files to the bucket with `machine-cloud files copy`",
        )


def _unpack(file: Path, database: Path, files: Path) -> str:
    """Unpack `file`; return the location of its files if the archive does not contain them, else ""."""
    files.mkdir(mode=0o700)
    has_database, location = False, ""
    try:
        with file.open("rb") as source:
            archive = Archive(source, BOUNDS)
            for member in archive:
                name = member.name.decode("utf-8", "replace")
                if member.kind is MemberKind.FILE and name == LOCATION_ENTRY and member.size < 1000:
                    location = archive.read(member.size).decode(errors="replace").strip()
                    continue
                path = _target_path(name, member.kind, database, files)
                has_database = has_database or path == database
                path.parent.mkdir(mode=0o700, exist_ok=True)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as output:
                    while piece := archive.read(PIECE):
                        output.write(piece)
                    output.flush()
                    os.fsync(output.fileno())
    except (BadArchiveError, FileExistsError) as error:
        raise MachineError(
            f"{file} is not a backup of a cloud, or is damaged: {error}", kind=ErrorKind.PRECONDITION
        ) from error
    if not has_database:
        raise MachineError(
            f"{file} is not a backup of a cloud: it does not contain {DATABASE}", kind=ErrorKind.PRECONDITION
        )
    return location


def _target_path(name: str, kind: MemberKind, database: Path, files: Path) -> Path:
    """Return the target path of a member; BadArchiveError for a member that does not belong to a backup."""
    parts = name.split("/")
    if kind is MemberKind.FILE and parts == [DATABASE]:
        return database
    if kind is MemberKind.FILE and len(parts) == 3 and parts[0] == FILES and all(part.isalnum() for part in parts[1:]):
        return files / parts[1] / parts[2]
    raise BadArchiveError(f"it contains the unexpected entry {name!r}")


@contextmanager
def _temporary_folder(target: Path) -> Iterator[Path]:
    """Create a temporary folder on the same disk as `target`, which needs the space anyway."""
    with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as name:
        yield Path(name)


def _require_unused(database: Path) -> None:
    """Merge the write-ahead log into the database; MachineError if it is in use. A damaged one is accepted."""
    with (
        suppress(sqlite3.DatabaseError),
        opened_exclusively(database, "stop machine-cloud, restore the backup, and start it again"),
    ):
        pass
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            database.with_name(database.name + ending).unlink()
