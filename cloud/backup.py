"""Backups of the default database: a copy of one moment, made while the cloud runs, checked before it counts."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from cloud.store.migrations import STEPS
from schema.errors import ErrorKind, MachineError


def backup(database: Path, target: Path) -> int:
    """Copy the database to a new file, readable by its owner only; its size in bytes.

    Raises MachineError if there is no database, if `target` exists, or if the copy is not whole: then it is removed.
    """
    if not database.is_file():
        raise MachineError(
            f"there is no database {database}", kind=ErrorKind.NOT_FOUND, remedy="name the cloud's folder with --data"
        )
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise MachineError(f"{target} exists", kind=ErrorKind.EXISTS, remedy="name a new file") from None
    except OSError as error:
        raise MachineError(f"{target} cannot be written: {error.strerror}", kind=ErrorKind.PERMISSION) from error
    try:
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
        check(target)
        _sync(target)
    except BaseException:
        target.unlink()
        raise
    return target.stat().st_size


def check(file: Path) -> None:
    """Raises MachineError unless `file` is a whole database of this cloud, of a version that this program knows."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if verdict == "ok" and version:
                connection.execute("SELECT id FROM organizations LIMIT 1")
    except sqlite3.Error as error:
        raise MachineError(f"{file} is no backup: {error}", kind=ErrorKind.PRECONDITION) from error
    if verdict != "ok" or not version:
        raise MachineError(f"{file} is no backup of a cloud, or damaged: {verdict}", kind=ErrorKind.PRECONDITION)
    if version > len(STEPS):
        raise MachineError(
            f"{file} is of a newer version ({version}; this program knows {len(STEPS)})",
            kind=ErrorKind.PRECONDITION,
            remedy="restore it with the newer machine-cloud",
        )


def restore(file: Path, database: Path) -> Path | None:
    """Put a backup in the place of the database; what was there is kept beside it, under the name that is returned.

    Only while no machine-cloud runs on it: MachineError if one does, or if `file` is no backup. Nothing is lost at any
    moment.
    """
    check(file)
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = database.with_name(database.name + ".restoring")
    new.unlink(missing_ok=True)
    backup(file, new)
    aside: Path | None = None
    if database.exists():
        _alone(database)
        number = 1
        while (kept := database.with_name(f"{database.name}.before-restore-{number}")).exists():
            number += 1
        database.replace(kept)
        aside = kept
    new.replace(database)
    _sync(database.parent)
    return aside


def _alone(database: Path) -> None:
    """Bring everything into the one file; MachineError if somebody uses it."""
    with closing(sqlite3.connect(database, timeout=0.2, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise MachineError(
                f"{database} is in use: {error}",
                kind=ErrorKind.PRECONDITION,
                remedy="stop machine-cloud, restore, and start it again",
            ) from error
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            database.with_name(database.name + ending).unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
