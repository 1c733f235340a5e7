"""Answers to SQL queries as the script of the page `/sql` reads them: lines of JSON, while the query runs.

Each line is an object: `{"stage": "running", "percent": 12}` while the query runs, and at last `{"columns": …}` with
the rows, or `{"error": …}`. A caller that leaves ends the query.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cloud.domain.queries.bson import decode
from cloud.domain.queries.query import QueryAnswer, QueryError, QueryStage
from cloud.services.data.data import DataService
from schema import MachineError

MOST: Final = 4 * 1024 * 1024  # bytes of rows that are sent to the page; a file has all
LINE_LIMIT: Final = 10.0  # seconds
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = 1 << 53  # integers beyond are no numbers of JavaScript
_KINDS: Final = (
    ("TIMESTAMP", "time"),
    ("DATE", "time"),
    ("BOOLEAN", "boolean"),
    *((name, "number") for name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT")),
    *((name, "number") for name in ("UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL")),
    ("JSON", "json"),
    ("STRUCT", "json"),
    ("MAP", "json"),
)
"""Beginnings of the names of types, and kinds of values as the page shows them; all others are texts."""


class StreamedAnswer(Response):
    """A response that asks the query when it is sent."""

    def __init__(self, service: DataService, organization: str, query: str) -> None:
        super().__init__(media_type="application/x-ndjson", headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._service, self._organization, self._query = service, organization, query
        self._stage: tuple[QueryStage, int] | None = None
        self._changed = trio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines; see ASGI 3. A caller that does not read a line for LINE_LIMIT seconds ends the query, too."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        last = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_stages, send, nursery.cancel_scope)
            last = await self._asked()
            nursery.cancel_scope.cancel()
        if last:
            await send({"type": "http.response.body", "body": last + b"\n"})

    async def _send_stages(self, send: Send, query: trio.CancelScope) -> None:
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            assert self._stage is not None
            stage, percent = self._stage
            line = json.dumps({"stage": stage.value, "percent": percent}).encode() + b"\n"
            with trio.move_on_after(LINE_LIMIT, shield=True) as limit:  # a line is sent whole, or is the last one
                await send({"type": "http.response.body", "body": line, "more_body": True})
            if limit.cancelled_caught:
                query.cancel()

    def _report(self, stage: QueryStage, percent: int) -> None:
        self._stage = stage, percent
        self._changed.set()

    async def _asked(self) -> bytes:
        try:
            answer = await self._service.tabular_answer(self._organization, self._query, self._report)
        except MachineError as error:
            return json.dumps(error_of(error)).encode()
        size = min(MOST, sum(map(len, answer.rows)))
        return await self._service.offload(size, partial(as_json, answer))


def error_of(error: MachineError) -> dict[str, Any]:
    """Return an error for the page."""
    return {"error": str(error), "position": error.position if isinstance(error, QueryError) else None}


def as_json(answer: QueryAnswer) -> bytes:
    """Return columns and rows as JSON, with all rows that fit into MOST."""
    columns = [{"name": name, "type": type_, "kind": kind_of(type_)} for name, type_ in answer.columns]
    size, shown = 0, 0
    while shown < len(answer.rows) and size + len(answer.rows[shown]) <= MOST:
        size += len(answer.rows[shown])
        shown += 1
    rows = [[_value(value) for value in decode(row).values()] for row in answer.rows[:shown]]
    content = {"columns": columns, "rows": rows, "count": len(answer.rows)}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def kind_of(type_: str) -> str:
    """Return how values of a type of DuckDB are shown: number, time, boolean, json or text."""
    if type_.endswith("]"):
        return "json"
    return next((kind for name, kind in _KINDS if type_.startswith(name)), "text")


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - _EPOCH).total_seconds() * 1000
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return str(value)
    if isinstance(value, dict):
        return {name: _inner(each) for name, each in value.items()}
    return [_inner(each) for each in value] if isinstance(value, list) else value


def _inner(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else _value(value)
