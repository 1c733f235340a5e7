"""SQL queries in child processes: a new process for each, with limits, killed when it is no longer needed.

SQLite functions cannot be interrupted (`instr` on long texts runs for hours), but a process can be killed. Each process
is a new interpreter with few imports, which takes a tenth of a second: the cloud has threads, so it cannot fork.
"""

from __future__ import annotations

import marshal
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import trio

from cloud.domain.queries.query import COLUMNS, MAX_BYTES, MAX_READINGS, MAX_ROWS, TABLE, Cells
from cloud.domain.queries.query_child import ANSWER, NICE, QUERY, ROWS, SETTINGS
from cloud.values.limits import SQL_QUEUE, SQL_TEXT
from cloud.work.slots import Slots
from schema.errors import ErrorKind, MachineError

AT_ONCE: Final = 4  # processes
EACH: Final = 1  # processes for one organization
_ROOT: Final = str(Path(__file__).resolve().parents[3])
_PROGRAM: Final = (
    f"import os; os.nice({NICE}); import sys; sys.path.insert(0, {_ROOT!r}); "  # -I: nothing else is on the path
    "from cloud.domain.queries.query_child import main; main()"
)
_CHUNK: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one query. Times are in seconds, sizes in bytes."""

    cpu: int = 20
    wall: float = 60.0  # from the start of the process, including the copying of readings
    memory: int = 640 * 1024 * 1024  # address space, including the copy
    rows: int = MAX_ROWS
    size: int = MAX_BYTES
    readings: int = MAX_READINGS


class QueryProcesses:
    """The Engine of a cloud."""

    def __init__(self, bounds: Bounds = Bounds()) -> None:
        self._bounds = bounds
        self._slots = Slots(AT_ONCE, EACH, SQL_QUEUE)

    async def execute(self, organization: str, query: str, readings: AsyncIterator[Sequence[Cells]]) -> list[bytes]:
        """See Engine."""
        SQL_TEXT.check(len(query.encode("utf-8", "surrogatepass")), "the query")
        async with self._slots.hold(organization):
            with trio.move_on_after(self._bounds.wall):
                return await self._executed(query, readings)
        raise _too_long()

    async def _executed(self, query: str, readings: AsyncIterator[Sequence[Cells]]) -> list[bytes]:
        async with _child() as process:
            try:
                await self._fill(process.stdin, readings)
                await _send(process.stdin, QUERY, query.encode("utf-8", "surrogatepass"))
            except trio.BrokenResourceError:
                pass  # the process has ended; its output says why
            answer = await self._received(process.stdout)
            return self._rows(answer, await process.wait())

    async def _fill(self, stdin: trio.abc.SendStream | None, readings: AsyncIterator[Sequence[Cells]]) -> None:
        bounds = self._bounds
        settings = {"table": TABLE, "columns": COLUMNS, "cpu": bounds.cpu, "memory": bounds.memory}
        await _send(stdin, SETTINGS, marshal.dumps({**settings, "rows": bounds.rows, "bytes": bounds.size}))
        count = 0
        async for batch in readings:
            count += len(batch)
            if count > bounds.readings:
                raise MachineError(
                    f"the organization has more than {bounds.readings} readings, too many for an SQL query",
                    kind=ErrorKind.EXHAUSTED,
                    remedy="export the readings of one method (ExportTabularData), or let old readings expire",
                )
            await _send(stdin, ROWS, marshal.dumps(list(batch)))

    async def _received(self, stdout: trio.abc.ReceiveStream | None) -> bytearray:
        assert stdout is not None
        answer = bytearray()
        while piece := await stdout.receive_some(_CHUNK):
            answer += piece
            if len(answer) > self._bounds.size + _CHUNK:
                raise RuntimeError("the process of a query returned more than allowed")
        return answer

    def _rows(self, answer: bytearray, status: int) -> list[bytes]:
        if status == -signal.SIGXCPU or status == -signal.SIGKILL:
            raise _too_long()
        if not answer:
            raise MachineError(
                f"the process of the query ended unexpectedly (status {status})",
                kind=ErrorKind.EXHAUSTED,
                remedy="select fewer rows, or shorter texts",
            )
        if answer[:1] != ANSWER:
            kind, message, remedy = msgspec.json.decode(answer[1:], type=tuple[str, str, str])
            raise MachineError(message, kind=ErrorKind(kind), remedy=remedy)
        rows, offset = [], 1
        with memoryview(answer) as view:
            while offset < len(view):
                size = int.from_bytes(view[offset : offset + 4], "little")  # BSON begins with its length
                if size < 5 or offset + size > len(view):
                    raise RuntimeError("the process of a query returned an incomplete row")
                rows.append(bytes(view[offset : offset + size]))
                offset += size
        return rows


@asynccontextmanager
async def _child() -> AsyncIterator[trio.Process]:
    """Open a process that is killed on leaving the context. It inherits no environment."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                await stream.aclose()
            await process.wait()


async def _send(stdin: trio.abc.SendStream | None, kind: bytes, content: bytes) -> None:
    assert stdin is not None
    await stdin.send_all(kind + len(content).to_bytes(4, "big") + content)


def _too_long() -> MachineError:
    return MachineError(
        "the query takes too long", kind=ErrorKind.EXHAUSTED, remedy="query a shorter time range, or use fewer joins"
    )
