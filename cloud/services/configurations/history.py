"""Revisions of configurations and fragments beyond the published API, with their numbers and names of authors."""

from __future__ import annotations

from typing import Final

from cloud.domain.configurations import configurations, fragments
from cloud.domain.configurations.revisions import Revisions
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, operator
from cloud.domain.permissions.shown import reads_secrets, shown, shown_text, text_of
from cloud.services.common.base import Service, guarded
from cloud.services.configurations import history_messages as m
from cloud.services.configurations.editing import name_of
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError

MAX_PAGE: Final = 100  # revisions in one reply, each with its complete document

_Page = tuple[Revisions, list[str], bool]
"""Revisions, the names of their authors, and whether the caller may read secrets."""


@guarded
class HistoryService(Service):
    """machine.cloud.v1.HistoryService: revisions for commands."""

    @allow(operator(ObjectKind.PART, "part_id", inside=True))
    async def list_part_revisions(self, part_id: str, before: int | None = None, limit: int = 0) -> list[m.Revision]:
        """Return the revisions of a part below number `before`, newest first; secrets are masked except for owners.

        At most `limit` revisions (0 and more than 100 mean 100), and fewer if their documents exceed the limit
        `history`. INVALID for a negative number.
        """
        count = _count(before, limit)

        def work(sql: Sql) -> _Page:
            page = configurations.history(sql, part_id, before=before, limit=count)
            return self._page(sql, page, ObjectKind.PART, part_id)

        return await self._messages(await self.read_checked(work))

    @allow(operator(ObjectKind.FRAGMENT, "fragment_id", inside=True))
    async def list_fragment_revisions(
        self, fragment_id: str, before: int | None = None, limit: int = 0
    ) -> list[m.Revision]:
        """Return the revisions of a fragment; see `ListPartRevisions`."""
        count = _count(before, limit)

        def work(sql: Sql) -> _Page:
            page = fragments.revisions(sql, fragment_id, before=before, limit=count)
            return self._page(sql, page, ObjectKind.FRAGMENT, fragment_id)

        return await self._messages(await self.read_checked(work))

    def _page(self, sql: Sql, revisions: Revisions, of: ObjectKind, subject: str) -> _Page:
        names = [name_of(sql, revision.author) for revision in revisions]
        return revisions, names, reads_secrets(sql, self.author, of, subject)

    async def _messages(self, page: _Page) -> list[m.Revision]:
        revisions, names, whole = page

        def messages() -> list[m.Revision]:
            documents = [] if whole else [revision.document for revision in revisions]
            return [
                m.Revision(
                    revision.number,
                    revision.saved,
                    name,
                    revision.author.type,
                    revision.author.name,
                    shown_text(revision.text, whole=True)
                    if whole
                    else text_of(shown(revision.document, whole=False, alongside=documents)),
                )
                for revision, name in zip(revisions, names, strict=True)
            ]

        return await self.offload(revisions.size, messages)


def _count(before: int | None, limit: int) -> int:
    """Return the number of revisions to return; INVALID."""
    for name, number, least in (("before", before, 1), ("limit", limit, 0)):
        if number is not None and number < least:
            raise MachineError(
                f"{name} is {number}", kind=ErrorKind.INVALID, remedy=f"give {least} or more, or leave it out"
            )
    return min(limit or MAX_PAGE, MAX_PAGE)
