"""Readings for an SQL query: recent ones are copied to a folder, those in segments stay where they are.

Rows are read in several transactions, before the segments are listed: a reading that is sealed in between may be in
both, and those segments are named, so that it counts once.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any, Final

from cloud.blobs import Blobs
from cloud.domain.data import sources
from cloud.domain.data.segments.catalog import columns_of
from cloud.domain.data.segments.columns import KEYS, WHOLE
from cloud.domain.data.segments.parquet import Position
from cloud.domain.data.segments.sealing import Transactions
from cloud.domain.queries.query import MAX_COPIED, MAX_RECENT, Material
from cloud.domain.queries.view import RECENT, SOURCES
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from support import RunBlocking

PAGE: Final = 5000  # rows that one transaction reads at most
FIRST_PAGE: Final = 200  # in the first one, when their length is unknown
CHARACTERS: Final = 8_000_000  # that one transaction reads, if rows are as long as those before
TOGETHER: Final = 200  # sources that one transaction looks at
_FIRST: Final[Position] = (-(1 << 62), -1)
_LINE: Final = (
    "CAST(source AS TEXT) || '\t' || CAST(requested AS TEXT) || '\t' || CAST(received AS TEXT) || '\t' || "
    "CAST(number AS TEXT) || '\t' || data"
)


async def gathered(store: Transactions, blobs: Blobs, run: RunBlocking, owner: str, folder: Path) -> Material:
    """Write sources and recent readings of an organization into a folder; return where the others are.

    EXHAUSTED if there are too many recent ones; UNAVAILABLE if a disk or the file store cannot be used.
    """
    numbers, last = await store.read(lambda sql: (sources.of_organization(sql, owner), _next(sql)))
    copy = _Copy(run, folder)
    place, after, most = 0, _FIRST, min(PAGE, FIRST_PAGE)
    while place < len(numbers):
        lines, place, after = await store.read(partial(_lines, numbers=numbers, first=place, after=after, most=most))
        await copy.add(lines)
        most = max(1, min(PAGE, CHARACTERS * max(1, len(lines)) // max(1, sum(map(len, lines)))))
    described, listed, columns = await store.read(
        lambda sql: (_described(sql, owner), _segments(sql, owner), columns_of(sql, owner))
    )
    await copy.finish(described)
    files, again = [], []
    for number, blob, source, first, newest in listed:
        path = blobs.path(blob)
        files.append((str(await copy.file(blobs, blob) if path is None else path), source, first, newest))
        if number >= last:
            again.append(files[-1][0])
    keys = {name: number for number, name, _ in columns if name in (*KEYS, WHOLE)}
    return Material([each for each in columns if each[1] not in keys], keys, files, again, copy.longest)


class _Copy:
    """Files that are written for a query, in a thread."""

    def __init__(self, run: RunBlocking, folder: Path) -> None:
        self._run, self._folder = run, folder
        self.longest = self._count = self._size = 0

    async def add(self, lines: Sequence[str]) -> None:
        self._count += len(lines)
        if self._count > MAX_RECENT:
            raise MachineError(
                f"the organization has more than {MAX_RECENT} readings that are not in Parquet files, too many for SQL",
                kind=ErrorKind.EXHAUSTED,
                remedy="start the cloud with --seal-after, or let old readings expire",
            )
        await self._write(partial(self._append, lines))

    async def finish(self, described: Sequence[Sequence[object]]) -> None:
        def write() -> None:
            self._append(())  # so that the file exists
            with (self._folder / SOURCES).open("w", encoding="utf-8", errors="replace", newline="") as file:
                csv.writer(file, quoting=csv.QUOTE_ALL).writerows(described)

        await self._write(write)

    async def file(self, blobs: Blobs, blob: str) -> Path:
        """Copy a file from the file store."""
        path = self._folder / blob
        async with aclosing(blobs.read(blob)) as pieces:
            async for piece in pieces:
                self._size += len(piece)
                await self._write(partial(_extend, path, piece))
        return path

    async def _write(self, work: Any) -> None:
        if self._size > MAX_COPIED:
            raise MachineError(
                f"the query needs a copy of more than {MAX_COPIED >> 30} GiB of readings",
                kind=ErrorKind.EXHAUSTED,
                remedy="keep files in a folder instead of a bucket, or let old readings expire",
            )
        try:
            await self._run(work)
        except OSError as error:
            raise MachineError(
                f"readings cannot be copied for the query: {error.strerror or error}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check that the disk of the cloud's data has free space",
            ) from error

    def _append(self, lines: Sequence[str]) -> None:
        text = "\n".join([*lines, ""]) if lines else ""
        if text.count("\n") != len(lines) or text.count("\t") != 4 * len(lines):  # JSON may have them as space
            text = "".join("\t".join([*line.split("\t", 4)[:4], _flat(line)]) + "\n" for line in lines)
        content = text.encode("utf-8", "replace")
        self.longest = max(self.longest, max(map(len, content.split(b"\n"))) + 1)
        self._size += len(content)
        _extend(self._folder / RECENT, content)


def _flat(line: str) -> str:
    return line.split("\t", 4)[4].translate({9: " ", 10: " ", 13: " "})


def _extend(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def _lines(sql: Sql, numbers: Sequence[int], first: int, after: Position, most: int) -> tuple[list[str], int, Position]:
    """Return up to `most` rows as lines, and the place and position at which the next ones begin."""
    lines: list[str] = []
    end = min(len(numbers), first + TOGETHER)
    for place in range(first, end):
        rows = sql.rows(
            f"SELECT {_LINE} AS line FROM readings "
            "WHERE source = ? AND (requested, number) > (?, ?) ORDER BY requested, number LIMIT ?",
            numbers[place],
            *after,
            most - len(lines),
        )
        lines += [row["line"] for row in rows]
        if len(lines) == most:
            _, requested, _, number, _ = lines[-1].split("\t", 4)
            return lines, place, (int(requested), int(number))
        after = _FIRST
    return lines, end, _FIRST


def _next(sql: Sql) -> int:
    """Return the number that the next segment will have."""
    row = sql.row("SELECT next_file_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1")
    return 0 if row is None else int(row["next_file_id"])


def _segments(sql: Sql, owner: str) -> list[tuple[int, str, int, int, int]]:
    """Return numbers, blobs, sources, and times of the first and last readings of the segments of an organization."""
    rows = sql.rows(
        "SELECT segments.number AS number, blob, source, first, last FROM data_sources CROSS JOIN segments "
        "WHERE data_sources.organization_id = ? AND segments.source = data_sources.number",
        owner,
    )
    return sorted((row["number"], row["blob"], row["source"], row["first"], row["last"]) for row in rows)


def _described(sql: Sql, owner: str) -> list[tuple[object, ...]]:
    """Return number, columns, and tags of the sources of an organization, for the file SOURCES."""
    numbers = sources.of_organization(sql, owner)
    tags = sources.tags_of(sql, numbers)
    return [
        (number, *astuple(source), json.dumps(tags[number]))
        for number, source in sources.by_numbers(sql, numbers).items()
    ]
