"""SQL queries in child processes: a new process for each, confined and with limits, killed when it is no longer needed.

DuckDB brings a copy of SQLite, and two copies in one process break each other's locks, so the cloud's process never
imports it. Each process is a new interpreter with few imports, which takes two tenths of a second: the cloud has
threads, so it cannot fork.
"""

from __future__ import annotations

import marshal
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from cloud.domain.queries.query import (
    MAX_BYTES,
    MAX_ROWS,
    Gather,
    Material,
    QueryAnswer,
    QueryError,
    QueryStage,
    Report,
    Sealed,
    unreported,
)
from cloud.domain.queries.query_child import COLUMNS, END, NEEDS, NICE, PIECE, REFUSAL, ROWS
from cloud.domain.queries.scratch import Scratch
from cloud.domain.queries.view import Needs
from cloud.values.limits import SQL_QUEUE, SQL_TEXT
from cloud.work.slots import Slots
from schema import ErrorKind, MachineError
from support import Worker, ungrouped

AT_ONCE: Final = 4  # processes
EACH: Final = 1  # processes for one organization
_ROOT: Final = str(Path(__file__).resolve().parents[3])
_MIB: Final = 1024 * 1024
_PERCENT: Final = re.compile(rb"\r *(\d{1,3})%")
_HEAD: Final = 5  # bytes before the content of a frame
MAX_JSON: Final = 4 * _MIB  # bytes of a frame that is decoded here, on the event loop: 10 ms


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one query. Times are in seconds, sizes in bytes."""

    cpu: int = 20
    wall: float = 60.0  # with the copying of readings
    memory: int = 1024 * _MIB  # address space
    engine: int = 384 * _MIB  # memory of DuckDB, beyond which it writes to its folder
    spill: int = 2048 * _MIB  # in its folder
    descriptors: int = 4096
    planned: int = 5000  # columns of all parts of the table, each time that a query names it
    rows: int = MAX_ROWS
    size: int = MAX_BYTES


class QueryProcesses:
    """The Engine of a cloud: `async with queries.opened()`. Folders of running queries are below `folder`."""

    def __init__(self, folder: Path | None = None, bounds: Bounds = Bounds()) -> None:
        self._bounds = bounds
        self._slots = Slots(AT_ONCE, EACH, SQL_QUEUE)
        self._scratch = Scratch(folder)
        self._worker = Worker("folders of queries")
        self._open = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[QueryProcesses]:
        """Accept queries while the context is open. What queries of a killed process have left is removed."""
        async with self._worker.opened():
            with suppress(OSError):  # a query says so
                await self._worker.run(self._begin)
            try:
                yield self
            finally:
                if self._open:
                    self._open = False
                    with trio.CancelScope(shield=True):
                        await self._worker.run(self._scratch.close)

    async def execute(
        self, organization: str, query: str | Sequence[bytes], gather: Gather, report: Report = unreported
    ) -> QueryAnswer:
        """Execute a query, in SQL or as stages of an aggregation in BSON; return its answer."""
        encoded = query.encode("utf-8", "surrogatepass") if isinstance(query, str) else b""
        stages = [] if isinstance(query, str) else list(query)
        SQL_TEXT.check(len(encoded) + sum(map(len, stages)), "the query")
        engine = _engine()
        report(QueryStage.WAITING, 0)
        async with self._slots.hold(organization):
            with trio.move_on_after(self._bounds.wall):
                async with self._folder() as folder, _child(engine) as process:
                    report(QueryStage.COPYING, 0)
                    material = await gather(folder)
                    settings = self._settings(encoded.decode("utf-8", "replace"), folder, material.sealed)
                    settings["stages"] = None if isinstance(query, str) else stages
                    return await self._executed(process, settings, material, report)
        raise _too_long()

    def _begin(self) -> None:
        if not self._open:
            self._scratch.open()
            self._open = True

    @asynccontextmanager
    async def _folder(self) -> AsyncIterator[Path]:
        folders: list[Path] = []

        def make() -> Path:
            self._begin()
            folders.append(self._scratch.add())
            return folders[0]

        try:
            try:
                path = await self._worker.run(make)
            except OSError as error:
                raise MachineError(
                    f"there can be no folder for the query: {error.strerror or error}",
                    kind=ErrorKind.UNAVAILABLE,
                    remedy="check that the disk of the cloud's data has free space",
                ) from error
            yield path
        finally:
            if self._open:  # otherwise the folder of all queries is removed
                # Also of a folder that is made after the caller has left.
                self._worker.post(lambda: self._scratch.remove(folders))

    async def _executed(
        self, process: trio.Process, settings: dict[str, Any], material: Material, report: Report
    ) -> QueryAnswer:
        assert process.stdout is not None
        frames = Frames(process.stdout, 2 * self._bounds.size + PIECE)
        await _send(process, settings)
        answer: QueryAnswer | None = None
        if (frame := await frames.following()) is not None:
            if frame[0] != NEEDS:
                raise RuntimeError("the process of a query did not say what it needs")
            copied = await material.copy(msgspec.json.decode(frame[1], type=Needs))
            report(QueryStage.RUNNING, 0)
            rest = {} if copied.sealed is None else _sealed(copied.sealed)
            await _send(process, {**rest, "again": list(copied.again), "longest": copied.longest})
            with ungrouped(MachineError, RuntimeError):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_reported, process, report)
                    answer = await _answer(frames)
                    nursery.cancel_scope.cancel()
        if answer is None:
            status = await process.wait()
            if status in (-signal.SIGXCPU, -signal.SIGKILL):
                raise _too_long()
            raise MachineError(
                f"the process of the query ended unexpectedly (status {status})",
                kind=ErrorKind.EXHAUSTED,
                remedy="select fewer rows, or shorter texts",
            )
        return answer

    def _settings(self, query: str, folder: Path, sealed: Sealed) -> dict[str, Any]:
        bounds = self._bounds
        limits = ("cpu", "memory", "engine", "spill", "descriptors", "planned", "rows")
        return {
            **{name: getattr(bounds, name) for name in limits},
            "bytes": bounds.size,
            "query": query,
            "folder": str(folder),
            **_sealed(sealed),
        }


def _sealed(sealed: Sealed) -> dict[str, Any]:
    return {"files": list(sealed.files), "columns": list(sealed.columns), "numbers": dict(sealed.numbers)}


async def _send(process: trio.Process, settings: dict[str, Any]) -> None:
    assert process.stdin is not None
    content = marshal.dumps(settings)
    try:
        await process.stdin.send_all(len(content).to_bytes(8, "big") + content)
    except trio.BrokenResourceError:
        pass  # the process has ended; its output says why


class Frames:
    """The frames that the process of a query sends; RuntimeError if they have more than `most` bytes."""

    def __init__(self, stdout: trio.abc.ReceiveStream, most: int) -> None:
        self._stdout = stdout
        self._buffered, self._left = bytearray(), most

    async def following(self) -> tuple[bytes, bytes] | None:
        """Return kind and content of the next frame, None if there is none; QueryError for a refusal."""
        buffered = self._buffered
        if not await self._fill(_HEAD):
            return None
        end = _HEAD + int.from_bytes(buffered[1:_HEAD], "big")
        if buffered[:1] != ROWS and end > MAX_JSON:
            raise RuntimeError("the process of a query returned more than allowed")
        if not await self._fill(end):
            return None
        kind, content = bytes(buffered[:1]), bytes(buffered[_HEAD:end])
        del buffered[:end]
        if kind == REFUSAL:
            error, message, remedy, position = msgspec.json.decode(content, type=tuple[str, str, str, int | None])
            raise QueryError(message, kind=ErrorKind(error), remedy=remedy, position=position)
        return kind, content

    async def _fill(self, size: int) -> bool:
        """Receive until there are so many bytes; False if the process has sent fewer."""
        while len(self._buffered) < size:
            piece = await self._stdout.receive_some(PIECE)
            if not piece:
                return False
            self._buffered += piece
            self._left -= len(piece)
            if self._left < 0:
                raise RuntimeError("the process of a query returned more than allowed")
        return True


async def _answer(frames: Frames) -> QueryAnswer | None:
    """Return the answer, or None if the process has not sent all of it; MachineError for a refusal."""
    columns: list[tuple[str, str]] = []
    rows: list[bytes] = []
    while (frame := await frames.following()) is not None:
        kind, content = frame
        if kind == COLUMNS:
            columns = msgspec.json.decode(content, type=list[tuple[str, str]])
        elif kind == ROWS:
            _split(content, rows)
        elif kind == END:
            return QueryAnswer(columns, rows)
    return None


async def _reported(process: trio.Process, report: Report) -> None:
    """Report the percentages of the progress bar that a process draws."""
    assert process.stderr is not None
    while piece := await process.stderr.receive_some(PIECE):
        if percents := _PERCENT.findall(piece):
            report(QueryStage.RUNNING, min(100, int(percents[-1])))


def _split(content: bytes, rows: list[bytes]) -> None:
    offset = 0
    while offset < len(content):
        size = int.from_bytes(content[offset : offset + 4], "little")  # BSON begins with its length
        if size < 5 or offset + size > len(content):
            raise RuntimeError("the process of a query returned an incomplete row")
        rows.append(content[offset : offset + size])
        offset += size


def _engine() -> str:
    """Return the folder from which the process imports DuckDB; UNSUPPORTED if it is not installed."""
    spec = find_spec("_duckdb")
    if spec is None or spec.origin is None:
        raise MachineError(
            "SQL needs DuckDB, which is not installed with this cloud",
            kind=ErrorKind.UNSUPPORTED,
            remedy="install the extra `data`: `pip install 'machine-runtime[data]'`",
        )
    origin = Path(spec.origin)
    return str(origin.parent.parent if origin.name.startswith("__init__.") else origin.parent)


@asynccontextmanager
async def _child(engine: str) -> AsyncIterator[trio.Process]:
    """Open a process that is killed on leaving the context. It inherits no environment."""
    program = (
        f"import os; os.nice({NICE}); import sys; sys.path += [{_ROOT!r}, {engine!r}]; "  # -I: no other path
        "from cloud.domain.queries.query_child import main; main()"
    )
    process = await trio.lowlevel.open_process(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            for stream in (process.stdin, process.stdout, process.stderr):
                assert stream is not None
                await stream.aclose()
            await process.wait()


def _too_long() -> MachineError:
    return MachineError(
        "the query takes too long", kind=ErrorKind.EXHAUSTED, remedy="query a shorter time range, or use fewer joins"
    )
