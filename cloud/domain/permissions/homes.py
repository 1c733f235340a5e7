"""Organization of a caller, whose transactions share one queue (cloud.store.turns)."""

from __future__ import annotations

from typing import Final

from cloud.domain.machines.machines import part
from cloud.domain.organizations.keys import organization_of
from cloud.store.sql import Sql, Store
from cloud.store.turns import working_for
from cloud.values.author import MACHINES, Author
from schema import ErrorKind, MachineError

REMEMBERED: Final = 100_000  # keys and parts


class Homes:
    """Cache of the organizations of keys and parts. They never change, so each is looked up once."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, str], str] = {}

    async def of(self, store: Store, author: Author) -> str:
        """Return the organization of an author, or the author's own name if it has none."""
        subject = author.type, author.name
        if (cached := self._cache.get(subject)) is not None:
            return cached
        try:
            with working_for(author.name):
                home = await store.read(lambda sql: _home(sql, author))
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
            home = ""  # the database is unavailable; the caller's next query reports it
        if not home:
            return author.name
        if len(self._cache) >= REMEMBERED:
            self._cache.clear()
        self._cache[subject] = home
        return home


def _home(sql: Sql, author: Author) -> str:
    if author.type not in MACHINES:
        return organization_of(sql, author.name)
    try:
        return part(sql, author.name).organization_id
    except MachineError:
        return ""
