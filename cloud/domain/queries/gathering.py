"""Readings for an SQL query: recent ones that it needs are copied to a folder, those in segments stay where they are.

The segments are listed for the query to say what it needs. Then rows are read in several transactions, and the segments
are listed again: a reading that was sealed in the meantime may be in both, so that list names the new segments, whose
readings count once. The confined process can open only what was listed at first; new segments are copied for it.
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
from cloud.domain.queries.query import MAX_COPIED, MAX_RECENT, CopiedData, Material, Sealed
from cloud.domain.queries.view import COPIES, RECENT, SOURCES, Needs
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from support import RunBlocking
from support.files import private

PAGE: Final = 5000  # rows that one transaction reads at most
FIRST_PAGE: Final = 200  # in the first one, when their length is unknown
CHARACTERS: Final = 8_000_000  # that one transaction reads, if rows are as long as those before
TOGETHER: Final = 200  # sources that one transaction looks at


async def gathered(store: Transactions, blobs: Blobs, run: RunBlocking, owner: str, folder: Path) -> Material:
    """Write the sources of an organization into a folder; return where its readings are.

    `copy` of the result raises EXHAUSTED if a query needs too many recent ones. Both raise UNAVAILABLE if a disk or the
    file store cannot be used.
    """
    catalog = await store.read(lambda sql: _Catalog(sql, owner))
    copy = _Copy(run, folder)
    await copy.begin(catalog.sources)
    sealed: Sealed = await run(partial(catalog.sealed, copy, blobs, catalog.following))
    return Material(sealed, partial(_copied, store, blobs, run, owner, copy, catalog))


async def _copied(
    store: Transactions, blobs: Blobs, run: RunBlocking, owner: str, copy: _Copy, before: _Catalog, needs: Needs
) -> CopiedData:
    chosen = set(before.numbers if needs.sources is None else needs.sources)
    numbers = [number for number in before.numbers if number in chosen]  # of this organization, whatever is asked for
    begin: Position = (needs.low, -1)
    place, after, most = 0, begin, min(PAGE, FIRST_PAGE)
    while place < len(numbers):
        lines, place, after = await store.read(
            partial(_lines, needs=needs, numbers=numbers, first=place, after=after, most=most)
        )
        await copy.add(lines)
        most = max(1, min(PAGE, CHARACTERS * max(1, len(lines)) // max(1, sum(map(len, lines)))))
    snapshot, _ = await store.read(_state)
    changed = snapshot != before.snapshot
    catalog = await store.read(lambda sql: _Catalog(sql, owner)) if changed else before
    sealed: Sealed = await run(partial(catalog.sealed, copy, blobs, before.following))
    files, again = await run(partial(catalog.needed, sealed, copy, before.following, needs))
    for blob in files:
        await copy.file(blobs, blob)
    return CopiedData(copy.longest, sealed if changed else None, again)


class _Catalog:
    """The sources, segments and columns of an organization, in one transaction."""

    def __init__(self, sql: Sql, owner: str) -> None:
        self.snapshot, self.following = _state(sql)
        self.numbers = sources.of_organization(sql, owner)
        self.columns = columns_of(sql, owner)
        self.keys = {name: number for number, name, _ in self.columns if name in (*KEYS, WHOLE)}
        self.segments = _segments(sql, owner, self.keys.get(WHOLE, 0))
        tags = sources.tags_of(sql, self.numbers)
        self.sources = [
            (number, *astuple(source), json.dumps(tags[number]))
            for number, source in sources.by_numbers(sql, self.numbers).items()
        ]

    def sealed(self, copy: _Copy, blobs: Blobs, following: int) -> Sealed:
        """Return where the segments are; of those from the number `following` on there are copies."""
        files = []
        for number, blob, source, first, last, texts in self.segments:
            path = blobs.path(blob) if number < following else None
            files.append((str(copy.path(blob)) if path is None else path, source, first, last, texts))
        return Sealed([each for each in self.columns if each[1] not in self.keys], self.keys, files)

    def needed(self, sealed: Sealed, copy: _Copy, following: int, needs: Needs) -> tuple[list[str], list[str]]:
        """Return the blobs to be copied, and paths of segments whose readings may be among the recent ones, too."""
        blobs, again, covers = list[str](), list[str](), needs.covering()
        for (number, blob, *_), (path, source, first, last, _) in zip(self.segments, sealed.files, strict=True):
            if covers(source, first, last):
                if copy.has(path):
                    blobs.append(blob)
                if number >= following:
                    again.append(path)
        return blobs, again


class _Copy:
    """Files that are written for a query, in a thread."""

    def __init__(self, run: RunBlocking, folder: Path) -> None:
        self._run, self._folder = run, folder
        self.longest = self._count = self._size = 0

    async def add(self, lines: Sequence[str]) -> None:
        self._count += len(lines)
        if self._count > MAX_RECENT:
            raise MachineError(
                f"the query needs more than {MAX_RECENT} readings that are not in Parquet files",
                kind=ErrorKind.EXHAUSTED,
                remedy="query a shorter time range or fewer components, or start the cloud with --seal-after",
            )
        await self._write(partial(self._append, lines))

    async def begin(self, described: Sequence[Sequence[object]]) -> None:
        """Write the file of sources, and make what is written later."""

        def write() -> None:
            (self._folder / COPIES).mkdir(mode=private.FOLDER)
            self._append(())  # so that the file exists
            with (self._folder / SOURCES).open("w", encoding="utf-8", errors="replace", newline="") as file:
                csv.writer(file, quoting=csv.QUOTE_ALL).writerows(described)

        await self._write(write)

    def path(self, blob: str) -> Path:
        """Return the path of the copy of a file, whether or not it exists."""
        return self._folder / COPIES / blob

    def has(self, path: str) -> bool:
        """Return whether a file is one of the copies."""
        return path.startswith(f"{self._folder / COPIES}/")

    async def file(self, blobs: Blobs, blob: str) -> None:
        """Copy a file from the file store."""
        async with aclosing(blobs.read(blob)) as pieces:
            async for piece in pieces:
                self._size += len(piece)
                await self._write(partial(_extend, self.path(blob), piece))

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


def _lines(
    sql: Sql, needs: Needs, numbers: Sequence[int], first: int, after: Position, most: int
) -> tuple[list[str], int, Position]:
    """Return up to `most` rows as lines, and the place and position at which the next ones begin."""
    lines: list[str] = []
    end = min(len(numbers), first + TOGETHER)
    for place in range(first, end):
        rows = sql.rows(
            f"SELECT {_line(needs)} AS line FROM readings "
            "WHERE source = ? AND (requested, number) > (?, ?) AND requested <= ? ORDER BY requested, number LIMIT ?",
            numbers[place],
            *after,
            needs.high,
            most - len(lines),
        )
        lines += [row["line"] for row in rows]
        if len(lines) == most:
            _, requested, _, number, _ = lines[-1].split("\t", 4)
            return lines, place, (int(requested), int(number))
        after = (needs.low, -1)
    return lines, end, (needs.low, -1)


def _line(needs: Needs) -> str:
    """Return a row as a line of the file RECENT, in SQL. Without receipts and texts, an index has all that it needs."""
    received, data = "received" if needs.receipts else "'0'", " || data" if needs.texts else ""
    return f"source || '\t' || requested || '\t' || {received} || '\t' || number || '\t'{data}"


def _state(sql: Sql) -> tuple[int, int]:
    """Return the number of the newest snapshot of the catalog, and that which the next segment will have."""
    row = sql.row("SELECT snapshot_id, next_file_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1")
    return (0, 0) if row is None else (int(row["snapshot_id"]), int(row["next_file_id"]))


def _segments(sql: Sql, owner: str, whole: int) -> list[tuple[int, str, int, int, int, bool]]:
    """Return the segments of an organization: number, blob, source, times of the first and last readings, and whether
    the column `whole` has texts.
    """
    rows = sql.rows(
        """
        SELECT segments.number AS number, blob, source, first, last, (
            SELECT MAX(value_count) FROM ducklake_file_column_stats
            WHERE data_file_id = segments.number AND column_id = ?
        ) AS texts FROM data_sources CROSS JOIN segments
        WHERE data_sources.organization_id = ? AND segments.source = data_sources.number
        """,
        whole,
        owner,
    )
    return sorted(
        (row["number"], row["blob"], row["source"], row["first"], row["last"], row["texts"] != 0) for row in rows
    )
