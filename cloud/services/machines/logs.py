"""Published calls for logs of machines: pages, and a live stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogQuery, LogRecord
from cloud.services.common import messages as m
from cloud.services.common.base import Service
from cloud.values.cursor import cursor, read_cursor
from schema.errors import ErrorKind, MachineError

ERRORS: Final = ("error", "fatal", "panic", "dpanic", "critical")
MAX_LEVELS: Final = 50
MAX_WORDS: Final = 1000  # characters; databases limit the length of patterns

_NOWHERE: Final = {"File": "", "Line": 0}  # required by clients that write logs to a file


class Logs(Service):
    """Logs of machines."""

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
        """Return a page of entries, newest first by default.

        `range` is not supported: use `start` and `end`. `user_facing_only` has no effect.
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
        """Yield new entries without end. Lists are never empty, because clients take an empty one for the end."""
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
