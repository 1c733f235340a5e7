"""Published calls for logs of machines: pages, and a live stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogQuery, LogRecord
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, operator
from cloud.services.common import messages as m
from cloud.services.common.base import Service
from cloud.values.cursor import cursor, read_cursor
from schema import ErrorKind, MachineError

ERRORS: Final = ("error", "fatal", "panic", "dpanic", "critical")
MAX_LEVELS: Final = 50
MAX_TEXT: Final = 1000  # characters; databases limit the length of patterns

_NOWHERE: Final = {"File": "", "Line": 0}  # required by clients that write logs to a file


class Logs(Service):
    """Logs of machines."""

    @allow(operator(ObjectKind.PART, "id"))
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
            raise MachineError("`range` is not supported", kind=ErrorKind.UNSUPPORTED, remedy="use start and end")
        if len(levels) > MAX_LEVELS or max(len(filter or ""), len(source or "")) > MAX_TEXT:
            text = f"the filter has more than {MAX_LEVELS} levels, or a text of more than {MAX_TEXT} characters"
            raise MachineError(text, kind=ErrorKind.INVALID, remedy="shorten the filter")
        query = LogQuery(
            levels=ERRORS if errors_only else tuple(levels),
            contains=filter or "",
            start=start,
            end=end,
            source=source or "",
            ascending=order is m.LogOrder.ASCENDING,
            after=read_cursor(page_token) if page_token else None,
            limit=limit or logs.PAGE,
        )
        records = await self.read(lambda sql: logs.query(sql, id, query))
        full = len(records) == min(query.limit, logs.MAX_PAGE)
        token = cursor(records[-1].position, records[-1].number) if full else ""
        return m.GetRobotPartLogsResponse([_entry(record) for record in records], token)

    @allow(operator(ObjectKind.PART, "id"))
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
                while records := await self.read(lambda sql, after=last: logs.arrived(sql, id, after)):  # type: ignore[misc]
                    last = records[-1].number
                    matching = [record for record in records if _matches(record, levels, filter or "")]
                    if matching:
                        yield [_entry(record) for record in matching]


def _matches(record: LogRecord, levels: Sequence[str], text: str) -> bool:
    text = text.lower()
    return (not levels or record.level in levels) and (
        not text or text in record.message.lower() or text in record.logger.lower()
    )


def _entry(record: LogRecord) -> m.LogEntry:
    return m.LogEntry(
        host=record.host,
        level=record.level,
        time=record.time,
        logger_name=record.logger,
        message=record.message,
        caller={**_NOWHERE, **(record.caller or {})},
        stack=record.stack,
        fields=list(record.fields),
    )
