"""Which organization somebody belongs to who calls: their transactions wait in its line (cloud.store.turns)."""

from __future__ import annotations

from typing import Final

from cloud.author import MACHINES, Author
from cloud.keys import organization_of
from cloud.machines import part
from cloud.store.sql import Sql, Store
from cloud.store.turns import working_for
from schema.errors import ErrorKind, MachineError

REMEMBERED: Final = 100_000  # keys and parts


class Homes:
    """The organizations of keys and parts, which never change: each is looked for once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    async def of(self, store: Store, author: Author) -> str:
        """The organization that an author belongs to; its own name if there is none."""
        subject = author.type, author.name
        if (known := self._known.get(subject)) is not None:
            return known
        try:
            with working_for(author.name):
                found = await store.read(lambda sql: _home(sql, author))
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
            found = ""  # the database is away, which is said where something is asked of it
        if not found:
            return author.name
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[subject] = found
        return found


def _home(sql: Sql, author: Author) -> str:
    if author.type not in MACHINES:
        return organization_of(sql, author.name)
    try:
        return part(sql, author.name).organization_id
    except MachineError:
        return ""
