"""Checks of a cloud's database and files, and of their consistency with each other."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from cloud.blobs import Blob, Blobs, sizes
from cloud.blobs.choice import store_of
from cloud.commands.options import Options
from cloud.domain.upkeep import identity
from cloud.domain.upkeep.named import named
from cloud.store import soundness, trash
from cloud.store.commands import opened_for_command
from cloud.store.migrations import STEPS, newer
from cloud.store.sql import Store
from schema.errors import MachineError
from support import private
from support.worker import Worker

_BACK: Final = "put it back from a backup: restore one beside this cloud and copy the file to the same place"
_EDGES: Final = (
    "",
    *(f"{number:02x}" for number in range(1, 256)),
    "\x7f",
)  # bounds of the key ranges that are read at a time


@dataclass(frozen=True, slots=True)
class Problem:
    """A detected problem. `check` names the check; `subject` is a path or the key of a file."""

    check: str
    subject: str
    message: str
    remedy: str
    repaired: bool = False


@dataclass(slots=True)
class Report:
    """Result of an examination.

    `trash` counts files in the trash, `unnamed` files to which neither a row nor a note of the trash refers.
    """

    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    named: int = 0
    trash: int = 0
    unnamed: int = 0
    done: list[str] = field(default_factory=list)  # changes that were made

    @property
    def healthy(self) -> bool:
        """Whether no problem is left to repair."""
        return all(problem.repaired for problem in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Options of an examination."""

    repair: bool = False
    digests: bool = False
    adopt: bool = False
    release: bool = False


async def examine(options: Options, wanted: Wanted) -> Report:
    """Check everything; repair and change only what `wanted` requests. The cloud may be running.

    Raises MachineError if the database or the file store cannot be reached.
    """
    report = Report()
    worker = Worker("doctor")
    async with worker.opened():
        report.problems += await worker.run(lambda: list(_modes(options, wanted.repair)))
        if not options.postgres:
            broken = await worker.run(lambda: list(_file(options.database)))
            report.problems += broken
            if broken:
                return report
    async with store_of(options.files) as blobs:
        failure: MachineError | None = None
        async with opened_for_command(options.database, options.postgres) as store:
            try:
                await _together(store, blobs, wanted, report)
            except MachineError as error:
                failure = error  # raised here, the store's nursery would wrap it in an exception group
        if failure is not None:
            raise failure
    return report


def _modes(options: Options, repair: bool) -> Iterator[Problem]:
    paths = [] if options.postgres else [options.data]
    paths += [options.data / f"cloud.db{ending}" for ending in ("", "-wal", "-shm") if not options.postgres]
    for path in (*paths, *((options.files,) if isinstance(options.files, Path) else ())):
        if private.is_open(path):
            repaired = repair and private.close(path)
            remedy = f"chmod go= {path}, or `doctor --repair`"
            yield Problem("permissions", str(path), f"{path} can be read by other users", remedy, repaired)


def _file(database: Path) -> Iterator[Problem]:
    """Yield the problems of the database file."""

    def problem(message: str, remedy: str) -> Problem:
        return Problem("database", str(database), message, remedy)

    if not database.is_file():
        yield problem(f"there is no database {database}", "name the folder of the cloud with --data")
        return
    if reason := soundness.wal_damage(database):
        yield problem(f"{database}-wal is damaged: {reason}", soundness.RESTORE)
        return
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            soundness.check(connection, database, lambda: False)
            version = soundness.version_of(connection)
    except MachineError as error:
        yield problem(error.message, error.remedy)
    except sqlite3.Error as error:
        yield problem(f"the database {database} cannot be read: {error}", soundness.RESTORE)
    else:
        if version > len(STEPS):
            yield problem(newer(version).message, newer(version).remedy)
        elif not version:
            yield problem(f"the database {database} is empty", f"if it should not be: {soundness.RESTORE}")
        elif version < len(STEPS):
            yield problem(
                f"the database {database} is of an older version ({version}; this program makes {len(STEPS)})",
                "start this machine-cloud with it once, which brings it up to date",
            )


async def _together(store: Store, blobs: Blobs, wanted: Wanted, report: Report) -> None:
    if wanted.adopt:
        made = await identity.adopt(store, blobs)
        report.done.append(f"the files in {blobs.where} belong to this database now (cloud {made.cloud})")
    try:
        await identity.compare(store, blobs)
    except MachineError as error:
        report.problems.append(Problem("identity", blobs.where, error.message, error.remedy))
    there = await sizes(blobs)
    report.files = len(there)
    keys: set[str] = set()
    for first, last in pairwise(_EDGES):
        for key, blob in (await store.read(lambda sql, f=first, t=last: named(sql, f, t))).items():  # type: ignore[misc]
            keys.add(key)
            if problem := await _content(blobs, blob, there.get(key), wanted.digests):
                report.problems.append(problem)
    report.named = len(keys)
    noted = await store.read(lambda sql: trash.between(sql, "", "\x7f"))
    report.trash = len(noted.keys() & there.keys() - keys)
    report.unnamed = len(there.keys() - keys - noted.keys())
    if again := sorted(noted.keys() & keys):
        if wanted.repair:
            await store.write(lambda sql: trash.forget(sql, again))
        message = f"{len(again)} files are in the trash although rows name them"
        report.problems.append(Problem("trash", again[0], message, "the next sweep takes them out", wanted.repair))
    if wanted.release:
        count = await store.write(trash.release)
        report.done.append(f"{count} files without a row may go {trash.DELAY.days} days after they were noticed")


async def _content(blobs: Blobs, blob: Blob, size: int | None, digests: bool) -> Problem | None:
    """Return the problem of a file that a row refers to, or None; `size` is the size in the store's listing."""
    if size is None:
        if await blobs.size(blob.key) is not None:
            return None  # it was added after the listing
        return Problem("missing", blob.key, f"file {blob.key} is named by the database and not there", _BACK)
    if size != blob.size:
        return Problem("size", blob.key, f"file {blob.key} has {size} bytes in the place of {blob.size}", _BACK)
    if digests:
        found = hashlib.sha256()
        with suppress(MachineError):
            async with aclosing(blobs.read(blob.key)) as pieces:
                async for piece in pieces:
                    found.update(piece)
        if found.hexdigest() != blob.digest:
            return Problem("digest", blob.key, f"file {blob.key} has other bytes than were uploaded", _BACK)
    return None
