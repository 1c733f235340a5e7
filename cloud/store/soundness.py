"""Integrity checks of a SQLite database file before it is used. Blocking: for the database's thread.

SQLite has no checksums of its pages: `quick_check` finds broken structure, but not a changed letter in a text. From a
write-ahead log, SQLite uses the frames up to the first invalid one, and it silently ignores a log with a broken header.
The latest changes would be lost, so that case is refused here.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError
from support.files import private

LIMIT: Final = 5.0  # seconds that a start waits for the check, which then continues in the background
FINDINGS: Final = 3  # maximum number of findings in the error message
_STEPS: Final = 20_000  # virtual machine instructions between checks whether to stop
_HEAD: Final = 32  # bytes; "WAL Header Format" in sqlite.org/fileformat2.html
_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}  # byte order of checksums, by magic number
RESTORE: Final = "stop every machine-cloud, keep a copy of the file, and restore a backup: machine-cloud restore FILE"


def prepare(path: Path) -> None:
    """Create a missing file, and let only this user read it and the files that SQLite creates with it.

    SQLite gives its log the mode of the database. Raise MachineError if the log is damaged.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, private.FILE))
    for ending in ("", "-wal", "-shm"):
        private.close(path.with_name(path.name + ending))
    if reason := wal_damage(path):
        raise MachineError(
            f"{path}-wal, the log of the database, is damaged: {reason}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"{RESTORE}; without a backup, move {path.name}-wal away: the latest changes are then lost",
        )


def wal_damage(path: Path) -> str:
    """Return what is wrong with the header of a database's write-ahead log; "" if nothing, or if there is no log."""
    try:
        with path.with_name(path.name + "-wal").open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return ""
    if not head.strip(b"\0"):  # empty, or its first write never reached the disk: nothing in it was acknowledged
        return ""
    if len(head) < _HEAD:
        return f"it ends after {len(head)} bytes"
    order = _MAGIC.get(struct.unpack(">I", head[:4])[0])
    if order is None:
        return "it does not begin with the header of a log"
    first_sum = second_sum = 0
    for first_word, second_word in struct.iter_unpack(f"{order}II", head[:24]):
        first_sum = (first_sum + first_word + second_sum) & 0xFFFFFFFF
        second_sum = (second_sum + second_word + first_sum) & 0xFFFFFFFF
    return "" if (first_sum, second_sum) == struct.unpack(">II", head[24:]) else "the checksum of its header is wrong"


def check(connection: sqlite3.Connection, path: Path, stop: Callable[[], bool]) -> bool:
    """Check the structure of the database; False if `stop` ended the check early. MachineError if it is damaged."""
    connection.set_progress_handler(stop, _STEPS)
    try:
        findings = [row[0] for row in connection.execute(f"PRAGMA quick_check({FINDINGS})")]
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return False
        if isinstance(error, sqlite3.OperationalError):  # busy, or a disk error: not a problem of the content
            raise
        findings = [str(error)]
    finally:
        connection.set_progress_handler(None, 0)
    if findings != ["ok"]:
        text = "; ".join(" ".join(finding.split())[:200] for finding in findings)
        raise MachineError(f"the database {path} is damaged: {text}", kind=ErrorKind.PRECONDITION, remedy=RESTORE)
    return True


def version_of(connection: sqlite3.Connection) -> int:
    """Return the number of executed migration steps; 0 for a database without tables."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_whole(connection: sqlite3.Connection) -> str:
    """Check every page and index; return "ok" or what is wrong. sqlite3.Error if it is not a cloud's database."""
    verdict = str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    if verdict == "ok" and version_of(connection):
        connection.execute("SELECT id FROM organizations LIMIT 1")
    return verdict
