"""Whether the file of a SQLite database is whole: checked before it is used. Blocking: for the database's thread.

SQLite keeps no checksums of its pages: `quick_check` finds broken structure, not a changed letter in a text. Of a
write-ahead log it uses the frames up to the first that does not fit, and ignores a log whose head is broken without a
word: what was written last would be lost, so that is refused here.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from schema.errors import ErrorKind, MachineError
from support import private

LIMIT: Final = 5.0  # seconds that a start waits for the check; a longer one goes on in the background
FINDINGS: Final = 3  # that are told
_STEPS: Final = 20_000  # of SQLite's machine between two looks whether to stop
_HEAD: Final = 32  # bytes; "WAL Header Format" in sqlite.org/fileformat2.html
_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}  # and the order of bytes in checksums
RESTORE: Final = "stop every machine-cloud, keep a copy of the file, and restore a backup: machine-cloud restore FILE"


def prepare(path: Path) -> None:
    """Make a missing file, and see that only this user can read it and what SQLite puts beside it.

    SQLite gives its log the mode of the database. Raises MachineError if the log is damaged.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, private.FILE))
    for ending in ("", "-wal", "-shm"):
        private.close(path.with_name(path.name + ending))
    if reason := wal_damage(path):
        raise MachineError(
            f"{path}-wal, the log of the database, is damaged: {reason}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"{RESTORE}; without a backup, move {path.name}-wal away: what was saved last is lost then",
        )


def wal_damage(path: Path) -> str:
    """What is wrong with the head of a database's write-ahead log; "" if nothing is, or if there is none."""
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
        return "its first bytes are not those of a log"
    one = two = 0
    for first, second in struct.iter_unpack(f"{order}II", head[:24]):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return "" if (one, two) == struct.unpack(">II", head[24:]) else "the checksum of its head is wrong"


def check(connection: sqlite3.Connection, path: Path, stop: Callable[[], bool]) -> bool:
    """Check the structure of the database; False if `stop` said so before the end. MachineError if it is damaged."""
    connection.set_progress_handler(stop, _STEPS)
    try:
        found = [row[0] for row in connection.execute(f"PRAGMA quick_check({FINDINGS})")]
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return False
        if isinstance(error, sqlite3.OperationalError):  # busy, or the disk fails: not what is in the file
            raise
        found = [str(error)]
    finally:
        connection.set_progress_handler(None, 0)
    if found != ["ok"]:
        words = "; ".join(" ".join(one.split())[:200] for one in found)
        raise MachineError(f"the database {path} is damaged: {words}", kind=ErrorKind.PRECONDITION, remedy=RESTORE)
    return True
