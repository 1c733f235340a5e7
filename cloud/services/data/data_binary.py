"""Published calls for captured files: query, read, delete, create links."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Final

from cloud.domain.data import files
from cloud.domain.data.files import FileRecord
from cloud.domain.data.filters import DataFilter
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.credentials import require_in_force
from cloud.domain.permissions.data_scope import readable, reads, scope_of
from cloud.domain.permissions.rules import FILTERED_OR_JOB, OWNED, allow, home_operator, operator
from cloud.services.common.base import Cloud, Service
from cloud.services.data import data_messages as m
from cloud.services.data.data_words import described, filter_of, ids_of, last_of, page_of
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError

RESERVE: Final = 0.75  # share of a message for the content of files; the rest is for metadata
LINK: Final = timedelta(minutes=15)  # the published default
MAX_LINK: Final = timedelta(days=7)  # the published maximum


class Binary(Service):
    """Files that machines have captured."""

    @allow(FILTERED_OR_JOB)
    async def binary_data_by_filter(
        self,
        data_request: m.DataRequest | None = None,
        include_binary: bool = False,
        count_only: bool = False,
        include_internal_data: bool = False,
    ) -> m.BinaryPage:
        """Return a page of files, with content if requested; such a page may end before its limit.

        The end is not marked: the page after the last one is empty. There are no internal data. The count and the size
        are those of the page; with `count_only`, of all matching files.
        """
        request = data_request or m.DataRequest()
        data_filter, base = filter_of(request.filter), self.cloud.links.base

        def work(sql: Sql) -> tuple[list[FileRecord], list[m.BinaryMetadata], files.Total]:
            allowed_filter, scope = readable(sql, self.author, data_filter)
            if count_only:
                return [], [], files.total(sql, allowed_filter, scope)
            records = files.query(sql, allowed_filter, scope, page_of(request))
            if include_binary:
                records = self._first_that_fit(records)
            count = files.Total(len(records), sum(record.size for record in records))
            return records, described(sql, records, base), count

        records, metadata, count = await self.read(work)
        return m.BinaryPage(
            await self._filled(records, metadata, include_binary), count.count, last_of(records), count.size
        )

    @allow(FILTERED_OR_JOB)
    async def binary_data_by_ids(
        self,
        include_binary: bool = False,
        binary_ids: Sequence[m.BinaryID] = (),
        binary_data_ids: Sequence[str] = (),
    ) -> m.BinaryByIDs:
        """Return the files with these ids; NOT_FOUND names the first missing one."""
        subjects, base = ids_of(binary_ids, binary_data_ids), self.cloud.links.base

        def work(sql: Sql) -> tuple[list[FileRecord], list[m.BinaryMetadata]]:
            require_in_force(sql, self.author)
            for subject in subjects:
                if not reads(sql, self.author, subject):
                    self.require(sql, Role.OPERATOR, ObjectKind.FILE, subject)
            records = files.by_ids(sql, subjects)
            if include_binary and len(self._first_that_fit(records)) < len(records):
                raise self._too_large(sum(record.size for record in records))
            return records, described(sql, records, base)

        records, metadata = await self.read(work)
        data = await self._filled(records, metadata, include_binary)
        return m.BinaryByIDs(data, len(data))

    @allow(OWNED)
    async def delete_binary_data_by_filter(
        self,
        filter: m.Filter | None = None,  # noqa: A002 - field of the wire
        include_internal_data: bool = False,
    ) -> int:
        """Delete the files of a filter that the caller owns; return their number. INVALID for an empty filter.

        Others can write in the meantime: a call that fails may have deleted some of them.
        """
        data_filter = filter_of(filter)
        if data_filter == DataFilter():
            raise MachineError(
                "an empty filter would delete everything",
                kind=ErrorKind.INVALID,
                remedy="set at least organization_ids",
            )

        def work(sql: Sql) -> int:
            scope = scope_of(sql, self.author, Role.OWNER)
            return files.delete(sql, files.ids(sql, data_filter, scope, files.AT_ONCE), self.now())

        deleted = 0
        while number := await self.change(work):
            deleted += number
        return deleted

    @allow(OWNED)
    async def delete_binary_data_by_ids(
        self, binary_ids: Sequence[m.BinaryID] = (), binary_data_ids: Sequence[str] = ()
    ) -> int:
        """Delete the files with these ids; return how many of them existed."""
        subjects = ids_of(binary_ids, binary_data_ids)

        def work(sql: Sql) -> int:
            return files.delete(sql, [subject for subject in subjects if self._exists(sql, subject)], self.now())

        return await self.change(work)

    @allow(home_operator(ObjectKind.FILE, "binary_data_id") | "a link outlasts a share")
    async def create_binary_data_signed_url(
        self, binary_data_id: str, expiration_minutes: int | None = None
    ) -> m.SignedURL:
        """Create a link that opens a file without a key, valid for 15 minutes by default and at most 7 days."""
        lasts = timedelta(minutes=expiration_minutes) if expiration_minutes else LINK
        if lasts > MAX_LINK:
            raise MachineError(
                f"a link cannot be valid for {expiration_minutes} minutes",
                kind=ErrorKind.INVALID,
                remedy=f"set expiration_minutes to at most {MAX_LINK // timedelta(minutes=1)}",
            )
        until = (self.now() + lasts).replace(microsecond=0)
        return m.SignedURL(self.cloud.links.url(f"/files/{binary_data_id}", until), until)

    @allow(operator(ObjectKind.FILE, "binary_data_id"))
    async def file(self, binary_data_id: str) -> FileRecord:
        """Return a file for a caller that serves its content. Not an RPC."""
        return await self.read(lambda sql: files.file(sql, binary_data_id))

    # ----

    def _exists(self, sql: Sql, subject: str) -> bool:
        try:
            self.require(sql, Role.OWNER, ObjectKind.FILE, subject, home=True)
        except MachineError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return False
        return True

    def _first_that_fit(self, records: Sequence[FileRecord]) -> list[FileRecord]:
        """Return as many of the first files as fit one answer with content; EXHAUSTED if even the first does not."""
        room = int(self.cloud.limits.message * RESERVE)
        fitting: list[FileRecord] = []
        for record in records:
            room -= record.size
            if room < 0:
                break
            fitting.append(record)
        if records and not fitting:
            raise self._too_large(records[0].size)
        return fitting

    def _too_large(self, size: int) -> MachineError:
        return MachineError(
            f"{size} bytes do not fit into one response",
            kind=ErrorKind.EXHAUSTED,
            remedy="request fewer files, or create a link (CreateBinaryDataSignedURL) and read the file over HTTP",
        )

    async def _filled(
        self, records: Sequence[FileRecord], metadata: Sequence[m.BinaryMetadata], content: bool
    ) -> list[m.BinaryData]:
        filled: list[m.BinaryData] = []
        for record, each in zip(records, metadata, strict=True):
            filled.append(m.BinaryData(await self._content(record) if content else b"", each))
        return filled

    async def _content(self, record: FileRecord) -> bytes:
        pieces: list[bytes] = []
        async with aclosing(self.cloud.blobs.read(record.blob)) as content:
            async for piece in content:
                pieces.append(piece)  # noqa: PERF401 - an async generator that is closed
        return b"".join(pieces)


async def linked_file(cloud: Cloud, subject: str) -> FileRecord:
    """Return a file by its id, for holders of a signed link; NOT_FOUND if it does not exist."""
    return await cloud.store.read(lambda sql: files.file(sql, subject))
