"""Log lines for programs: a WebSocket that sends the newest matching lines, and new ones on request.

Every message is a JSON object with one member. The first is `machine`; its `instance` changes with each restart, and
line numbers then start again. Then come `entries`, lists of lines, oldest first, and `missed`, the number of lines that
were discarded before they could be sent. Without `follow`, the connection is closed after the existing lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import trio
from starlette.websockets import WebSocket

from engine.views import LEVELS, PageSource, ShownEntry
from rpc.pages import DISCONNECTED, close_reason
from runtime.parts.web.forgery import check_origin
from runtime.parts.web.live import FRAME, REFUSED
from runtime.parts.web.logview import Filter
from schema import ConfigError, ErrorKind, MachineError, parse_duration
from schema.decoding import Pattern, PatternError
from telemetry.logs import compile_pattern, pattern_matches
from telemetry.logs.logger_names import subjects

INVALID: Final = 4400  # close code for invalid parameters; private use, like HTTP's 400
AT_ONCE: Final = 500  # maximum lines in a message, so that a slow reader soon has something to show


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The parameters of a request for log lines."""

    view: Filter
    logger: Pattern | None = None
    after: datetime | None = None
    newest: int | None = None
    since: int = 0
    follow: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str], now: datetime) -> LogQuery:
        """Parse the parameters of a request. Raises MachineError (INVALID)."""
        level = query.get("level", "debug").lower()
        if level not in LEVELS:
            raise _invalid(f"level={level}", f"one of {', '.join(LEVELS)}")
        return cls(
            view=Filter(level, query.get("resource", ""), query.get("text", "")),
            logger=_pattern(query.get("logger", "")),
            after=_moment(query.get("after", ""), now),
            newest=_number("newest", query["newest"]) if "newest" in query else None,
            since=_number("since", query.get("since", "0")),
            follow=query.get("follow", "") in ("1", "true"),
        )

    def admits(self, entry: ShownEntry) -> bool:
        """Return whether a line matches."""
        if self.after is not None and entry.time < self.after:
            return False
        if self.logger is not None and not pattern_matches(self.logger, subjects(entry.logger)):
            return False
        return self.view.admits(entry)


class LogStream:
    """The endpoint `/logs/stream?level=&logger=&text=&after=&newest=&follow=1&since=&instance=`."""

    def __init__(self, source: PageSource) -> None:
        self._source = source

    async def serve(self, socket: WebSocket) -> None:
        """Serve one reader until it disconnects or has received all requested lines."""
        try:
            check_origin(socket)
        except MachineError as error:
            await socket.close(REFUSED, close_reason(error.message))
            return
        await socket.accept()
        parameters = dict(socket.query_params)
        try:
            query = LogQuery.of(parameters, datetime.now(UTC))
        except MachineError as error:
            await socket.close(INVALID, close_reason(str(error)))
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_until_gone, socket, nursery.cancel_scope)
            try:
                await self._serve(socket, query, parameters.get("instance", ""))
                await socket.close()
            except DISCONNECTED:
                pass
            nursery.cancel_scope.cancel()

    async def _serve(self, socket: WebSocket, query: LogQuery, last_instance: str) -> None:
        status = self._source.status()
        instance = status.started.isoformat()
        seen = query.since if instance == last_instance else 0
        await _send(socket, machine={"instance": instance, "host": status.host, "version": status.version})
        entries = self._source.logs(seen)
        last, matching = _matching(entries, query, seen)
        if query.newest is not None:
            matching = matching[len(matching) - min(len(matching), query.newest) :]
        await self._send_lines(socket, matching, _missed(entries, seen))
        if not query.follow:
            return
        async with aclosing(self._source.log_changes(last)) as changes:
            async for _ in changes:
                entries = self._source.logs(last)
                missed = _missed(entries, last)
                last, matching = _matching(entries, query, last)
                await self._send_lines(socket, matching, missed)
                await trio.sleep(FRAME)

    async def _send_lines(self, socket: WebSocket, entries: list[ShownEntry], missed: int) -> None:
        if missed:
            await _send(socket, missed=missed)
        for start in range(0, len(entries), AT_ONCE):
            await _send(socket, entries=[_line(entry) for entry in entries[start : start + AT_ONCE]])


def _matching(entries: Iterable[ShownEntry], query: LogQuery, seen: int) -> tuple[int, list[ShownEntry]]:
    """Return the number of the newest entry (or `seen`), and the matching entries."""
    entries = list(entries)
    return (entries[-1].seq if entries else seen), [entry for entry in entries if query.admits(entry)]


def _missed(entries: Iterable[ShownEntry], seen: int) -> int:
    """Return the number of lines between `seen` and the oldest of `entries`; 0 for a new reader."""
    first = next(iter(entries), None)
    return first.seq - seen - 1 if first is not None and seen else 0


def _line(entry: ShownEntry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "time": entry.time,
        "level": entry.level,
        "logger": entry.logger,
        "caller": entry.caller,
        "message": entry.message,
        "fields": msgspec.Raw(entry.fields.encode() or b"{}"),
    }


async def _send(socket: WebSocket, **message: Any) -> None:
    await socket.send_text(msgspec.json.encode(message).decode())


async def _until_gone(socket: WebSocket, scope: trio.CancelScope) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    scope.cancel()


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise _invalid(f"{name}={text}", "a whole number")
    return int(text)


def _pattern(text: str) -> Pattern | None:
    try:
        return compile_pattern(text) if text else None
    except PatternError as error:
        raise _invalid(f"logger={text}", f"a logger's name, with * for anything ({error})") from None


def _moment(text: str, now: datetime) -> datetime | None:
    """Parse a time (RFC 3339), or a duration before `now`; None for an empty text."""
    if not text:
        return None
    try:
        return now - timedelta(seconds=parse_duration(text))
    except (ConfigError, ValueError, OverflowError):
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _invalid(f"after={text}", "a duration such as 10m, or a time such as 2006-01-02T15:04:05Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _invalid(what: str, expected: str) -> MachineError:
    return MachineError(f"{what} is not valid", kind=ErrorKind.INVALID, remedy=f"write {expected}")
