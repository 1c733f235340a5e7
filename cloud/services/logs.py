"""Logs of machines on the wire: pages of them, and as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from cloud import logs
from cloud.cursor import cursor, read_cursor
from cloud.logs import LogQuery, LogRecord
from cloud.services import messages as m
from cloud.services.base import Service
from schema.errors import ErrorKind, MachineError

ERRORS: Final = ("error", "fatal", "panic", "dpanic", "critical")
MAX_LEVELS: Final = 50
MAX_WORDS: Final = 1000  # characters; a database compares with patterns up to its own bound

_NOWHERE: Final = {"File": "", "Line": 0}  # where clients that write logs to a file look for them in every entry


class Logs(Service):
    """What machines have logged."""

    async def get_robot_part_logs(
        self,
        id: str,  # noqa: A002 - field of the wire
        errors_only: bool = False,
        filter: str | None = None,  # noqa: A002 - field of the wire
        page_token: str | None = None,
        levels: Sequence[str] = (),
        start: datetime | None = None,
        end: datetime | None = None,
        limit: int | None = None,
        source: str | None = None,
        user_facing_only: bool | None = None,
        order: m.LogOrder = m.LogOrder.UNSPECIFIED,
        range: str | None = None,  # noqa: A002 - field of the wire
    ) -> m.GetRobotPartLogsResponse:
        """A page of entries, the newest first unless `order` says otherwise.

        `range` is not published: give `start` and `end`. No entry is marked as being for users only.
        """
        if range:
            raise MachineError("`range` is not known here", kind=ErrorKind.UNSUPPORTED, remedy="give start and end")
        if len(levels) > MAX_LEVELS or max(len(filter or ""), len(source or "")) > MAX_WORDS:
            text = f"more than {MAX_LEVELS} levels, or a text of more than {MAX_WORDS} characters, are looked for"
            raise MachineError(text, kind=ErrorKind.INVALID, remedy="look for less")
        wanted = LogQuery(
            levels=ERRORS if errors_only else tuple(levels),
            contains=filter or "",
            start=start,
            end=end,
            source=source or "",
            ascending=order is m.LogOrder.ASCENDING,
            after=read_cursor(page_token) if page_token else None,
            limit=limit or logs.PAGE,
        )
        found = await self.read(lambda sql: logs.query(sql, id, wanted))
        full = len(found) == min(wanted.limit, logs.MAX_PAGE)
        token = cursor(found[-1].time, found[-1].number) if full else ""
        return m.GetRobotPartLogsResponse([_entry(one) for one in found], token)

    async def tail_robot_part_logs(
        self,
        id: str,  # noqa: A002 - field of the wire
        errors_only: bool = False,
        filter: str | None = None,  # noqa: A002 - field of the wire
    ) -> AsyncIterator[list[m.LogEntry]]:
        """Entries as they come, without end. Never an empty list: clients take it for the end."""
        levels = ERRORS if errors_only else ()
        with self.cloud.events.listening("logs", id) as news:
            last = await self.read(logs.newest)
            while True:
                await news.next()
                while found := await self.read(lambda sql, after=last: logs.arrived(sql, id, after)):  # type: ignore[misc]
                    last = found[-1].number
                    chosen = [one for one in found if _wanted(one, levels, filter or "")]
                    if chosen:
                        yield [_entry(one) for one in chosen]


def _wanted(one: LogRecord, levels: Sequence[str], text: str) -> bool:
    text = text.lower()
    return (not levels or one.level in levels) and (
        not text or text in one.message.lower() or text in one.logger.lower()
    )


def _entry(one: LogRecord) -> m.LogEntry:
    return m.LogEntry(
        host=one.host,
        level=one.level,
        time=one.time,
        logger_name=one.logger,
        message=one.message,
        caller={**_NOWHERE, **(one.caller or {})},
        stack=one.stack,
        fields=list(one.fields),
    )
