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
from schema import MachineError
from support import Worker
from support.files import private

_RESTORE_FILE: Final = "restore a backup to another folder, and copy the file from there to the same path in this cloud"
_KEY_BOUNDS: Final = (
    "",
    *(f"{number:02x}" for number in range(1, 256)),
    "\x7f",
)  # bounds of the key ranges that are read at a time


@dataclass(frozen=True, slots=True)
class DoctorProblem:
    """A detected problem. `check` names the check; `subject` is a path or the key of a file."""

    check: str
    subject: str
    message: str
    remedy: str
    repaired: bool = False


@dataclass(slots=True)
class DoctorReport:
    """Result of an examination.

    `trash` counts files in the trash, `unnamed` files to which neither a row nor a note of the trash refers.
    """

    problems: list[DoctorProblem] = field(default_factory=list)
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
class Examination:
    """Options of an examination."""

    repair: bool = False
    digests: bool = False
    adopt: bool = False
    release: bool = False


async def examine(options: Options, requested: Examination) -> DoctorReport:
    """Check everything; repair and change only what is requested. The cloud may be running.

    Raises MachineError if the database or the file store cannot be reached.
    """
    report = DoctorReport()
    worker = Worker("doctor")
    async with worker.opened():
        report.problems += await worker.run(lambda: list(_permission_problems(options, requested.repair)))
        if not options.postgres:
            problems = await worker.run(lambda: list(_database_problems(options.database)))
            report.problems += problems
            if problems:
                return report
    async with store_of(options.files) as blobs:
        failure: MachineError | None = None
        async with opened_for_command(options.database, options.postgres) as store:
            try:
                await _check_files(store, blobs, requested, report)
            except MachineError as error:
                failure = error  # raised here, the store's nursery would wrap it in an exception group
        if failure is not None:
            raise failure
    return report


def _permission_problems(options: Options, repair: bool) -> Iterator[DoctorProblem]:
    paths = [] if options.postgres else [options.data]
    paths += [options.data / f"cloud.db{ending}" for ending in ("", "-wal", "-shm") if not options.postgres]
    for path in (*paths, *((options.files,) if isinstance(options.files, Path) else ())):
        if private.is_open(path):
            repaired = repair and private.close(path)
            remedy = f"chmod go= {path}, or `doctor --repair`"
            yield DoctorProblem("permissions", str(path), f"{path} can be read by other users", remedy, repaired)


def _database_problems(database: Path) -> Iterator[DoctorProblem]:
    """Yield the problems of the database file."""

    def problem(message: str, remedy: str) -> DoctorProblem:
        return DoctorProblem("database", str(database), message, remedy)

    if not database.is_file():
        yield problem(f"there is no database {database}", "set --data to the folder of the cloud")
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
                f"the database {database} has an older version ({version}) than this program ({len(STEPS)})",
                "start this machine-cloud once with it, which updates it",
            )


async def _check_files(store: Store, blobs: Blobs, requested: Examination, report: DoctorReport) -> None:
    if requested.adopt:
        adopted = await identity.adopt(store, blobs)
        report.done.append(f"the files in {blobs.where} belong to this database now (cloud {adopted.cloud})")
    try:
        await identity.compare(store, blobs)
    except MachineError as error:
        report.problems.append(DoctorProblem("identity", blobs.where, error.message, error.remedy))
    listed_sizes = await sizes(blobs)
    report.files = len(listed_sizes)
    keys: set[str] = set()
    for first, last in pairwise(_KEY_BOUNDS):
        for key, blob in (await store.read(lambda sql, f=first, t=last: named(sql, f, t))).items():  # type: ignore[misc]
            keys.add(key)
            if problem := await _file_problem(blobs, blob, listed_sizes.get(key), requested.digests):
                report.problems.append(problem)
    report.named = len(keys)
    in_trash = await store.read(lambda sql: trash.between(sql, "", "\x7f"))
    report.trash = len(in_trash.keys() & listed_sizes.keys() - keys)
    report.unnamed = len(listed_sizes.keys() - keys - in_trash.keys())
    if still_used := sorted(in_trash.keys() & keys):
        if requested.repair:
            await store.write(lambda sql: trash.forget(sql, still_used))
        message = f"{len(still_used)} files are in the trash although database rows refer to them"
        report.problems.append(
            DoctorProblem(
                "trash", still_used[0], message, "the next sweep removes them from the trash list", requested.repair
            )
        )
    if requested.release:
        count = await store.write(trash.release)
        report.done.append(
            f"{count} files without a database row will be removed {trash.DELAY.days} days after they were noticed"
        )


async def _file_problem(blobs: Blobs, blob: Blob, size: int | None, digests: bool) -> DoctorProblem | None:
    """Return the problem of a file that a row refers to, or None; `size` is the size in the store's listing."""
    if size is None:
        if await blobs.size(blob.key) is not None:
            return None  # it was added after the listing
        return DoctorProblem(
            "missing", blob.key, f"the database refers to the file {blob.key}, which does not exist", _RESTORE_FILE
        )
    if size != blob.size:
        return DoctorProblem(
            "size", blob.key, f"file {blob.key} has {size} bytes instead of {blob.size}", _RESTORE_FILE
        )
    if digests:
        actual = hashlib.sha256()
        with suppress(MachineError):
            async with aclosing(blobs.read(blob.key)) as pieces:
                async for piece in pieces:
                    actual.update(piece)
        if actual.hexdigest() != blob.digest:
            return DoctorProblem(
                "digest", blob.key, f"file {blob.key} has different content than was uploaded", _RESTORE_FILE
            )
    return None
