"""Forwards the system's journal to the cloud: from the place where it stopped, through a queue on disk.

An entry is queued at least once. The place in the journal is stored only after the queue was synced to the disk. After
a crash or a power cut, the entries after this place are read again: those of SAVE_DELAY and of the last sync.
"""

from __future__ import annotations

import math
import random
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog
import trio

from agent.control.report import ProblemReport
from agent.control.settings import SettingsState
from agent.layout import AGENT, SERVER
from agent.system.journal import (
    LAST_ENTRY,
    SETTING,
    EntryLimit,
    JournalFilter,
    JournalLines,
    Position,
    follow_command,
    parse_entry,
    parse_filter,
)
from agent.system.programs import Programs, Tail, checked, environment, read_into
from schema import MachineError
from support import ChangeSignal, DoublingDelay, Worker, ungrouped
from support.files import replace_file
from support.foreign import remove
from telemetry.logs import WARN, Entry, OutboxSink
from telemetry.outbox import Outbox

OWN: Final = frozenset({AGENT, SERVER, "machine-launch"})
"""Identifiers of programs whose logs reach the cloud directly. Forwarding the agent's would be a loop."""
OWN_UNIT: Final = f"{AGENT}.service"
SAVE_DELAY: Final = 5.0
"""Seconds between two writes of the place in the journal: SD cards wear out."""
LAST_SAVE_LIMIT: Final = 3.0  # seconds for the last one when the agent stops
FIRST_RETRY: Final = 1.0
LONGEST_RETRY: Final = 60.0
LONGEST_LINE: Final = 256 * 1024
"""Bytes of an entry as JSON. journalctl shortens fields to 4 KiB, so this is reached by damaged entries only."""
REPORT_DELAY: Final = 1.0
"""Seconds without an entry after which dropped entries are reported."""

_CHUNK: Final = 16 * 1024  # bytes that are read at once, so that the event loop is never busy for long
_MAX_MESSAGE: Final = 400  # characters of a message of journalctl in a problem
KILL_TIME: Final = 2.0
_PLACE: Final = "place"  # file in the folder of the queue
_log = structlog.get_logger("agent.system")

Upload = Callable[[OutboxSink], Awaitable[None]]


class Forwarder:
    """Forwards the journal as `forward_system_logs` says. `upload` sends what is in a sink until cancelled.

    `setting` returns the filter, empty if the system must be left alone.
    """

    def __init__(
        self,
        folder: Path,
        settings: SettingsState,
        setting: Callable[[], str],
        programs: Programs,
        worker: Worker,
        upload: Upload,
    ) -> None:
        self._folder, self._settings, self._setting = folder, settings, setting
        self._programs, self._worker, self._upload = programs, worker, upload
        self._filter = JournalFilter()
        self._failure: ProblemReport | None = None
        self._filter_problems: tuple[ProblemReport, ...] = ()
        self._position: Position | None = None
        self._by_time = False  # because journald does not know the cursor
        self._moved = ChangeSignal()
        self._limit = EntryLimit()

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
        """What keeps entries from being forwarded."""
        return (*self._filter_problems, *((self._failure,) if self._failure is not None else ()))

    async def run(self) -> None:
        """Forward until cancelled. Another filter applies at once; without any, queue and place are deleted."""
        async with trio.open_nursery() as nursery, aclosing(self._settings.changes()) as changes:
            running: tuple[trio.CancelScope, trio.Event] | None = None
            async for _ in changes:
                self._filter, problems = parse_filter(self._setting(), OWN)
                self._filter_problems = tuple(
                    ProblemReport(error.path, error.reason, error.remedy) for error in problems
                )
                if self._filter.is_active:
                    running = running or await nursery.start(self._run_while_active)
                    continue
                if running is not None:
                    scope, ended = running
                    scope.cancel()
                    await ended.wait()
                    running = None
                self._failure = None
                await self._worker.run(partial(remove, self._folder))

    async def _run_while_active(self, *, task_status: trio.TaskStatus[tuple[trio.CancelScope, trio.Event]]) -> None:
        ended = trio.Event()
        try:
            with trio.CancelScope() as scope:
                task_status.started((scope, ended))
                while True:
                    try:
                        with ungrouped(OSError):
                            await self._forward()
                    except OSError as error:
                        self._note(f"the queue cannot be used: {error}", f"check the disk of {self._folder}")
                        await trio.sleep(LONGEST_RETRY)
        finally:
            ended.set()

    async def _forward(self) -> None:
        place = self._folder / _PLACE
        with trio.CancelScope(shield=True):  # a queue that is opened and dropped would keep its lock
            outbox = await self._worker.run(partial(Outbox, self._folder, self._worker.run))
        sink = OutboxSink(outbox)
        try:
            self._position = await self._worker.run(partial(_load, place))
            async with trio.open_nursery() as nursery:
                await nursery.start(sink.run)
                nursery.start_soon(self._upload, sink)
                nursery.start_soon(self._save, sink, place)
                await self._read(sink)
        finally:
            with trio.move_on_after(LAST_SAVE_LIMIT, shield=True), suppress(OSError):
                self._report_dropped(sink, now=True)
                await outbox.sync()
                await self._store(place)
            sink.close()

    async def _save(self, sink: OutboxSink, place: Path) -> None:
        """Store the place in the journal from time to time, once the entries before it are on the disk."""
        moved = self._moved.next
        while True:
            await moved.wait()
            moved = self._moved.next
            await trio.sleep(SAVE_DELAY)
            self._report_dropped(sink, now=True)
            position = self._position
            await sink.synced()
            with suppress(OSError):  # then more is read again after a crash
                await self._store(place, position)

    async def _store(self, place: Path, position: Position | None = None) -> None:
        position = position or self._position
        if position is not None:
            await self._worker.run(partial(replace_file, place, msgspec.json.encode(position)))

    # ---- reading

    async def _read(self, sink: OutboxSink) -> None:
        """Follow the journal until cancelled. journalctl is started again if it ends."""
        delay = DoublingDelay(FIRST_RETRY, LONGEST_RETRY)
        while True:
            began = trio.current_time()
            try:
                if self._position is None:
                    await self._begin()
                with ungrouped(MachineError, OSError):
                    reason = await self._follow(sink)
            except (MachineError, OSError) as error:
                reason = str(error)
            if trio.current_time() - began > LONGEST_RETRY:
                delay.reset()
            self._note(f"the journal cannot be read: {reason}", "run `journalctl --verify` on the machine")
            await trio.sleep(delay.next() * random.uniform(1.0, 1.1))

    async def _begin(self) -> None:
        """Begin after the newest entry, if there is one."""
        line = checked(LAST_ENTRY, await self._programs.run(LAST_ENTRY)).strip()
        if line and (entry := parse_entry(line.encode(), time.time())) is not None and entry.cursor:
            self._position = Position(entry.cursor, entry.time)
            self._moved.announce()

    async def _follow(self, sink: OutboxSink) -> str:
        """Queue entries until journalctl ends; return why it did."""
        errors = Tail()
        from nursery_graph import process_group  # large, and not needed while nothing is forwarded

        async with process_group(
            follow_command(self._position, by_time=self._by_time),
            grace=KILL_TIME,
            env=environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as group:
            assert group.process.stdout is not None
            assert group.process.stderr is not None
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read_into, group.process.stderr, errors)
                await self._take(group.process.stdout, sink)
            status = await group.wait()
        message = " ".join(errors.data.decode(errors="replace").split())[:_MAX_MESSAGE]
        if "cursor" in message and self._position is not None:
            self._by_time = True
            _log.warning(
                "the journal does not know the place where forwarding stopped: its time is used", reason=message
            )
        return message or f"journalctl ended with status {status}"

    async def _take(self, pipe: trio.abc.ReceiveStream, sink: OutboxSink) -> None:
        lines = JournalLines(LONGEST_LINE)
        while True:
            pause = REPORT_DELAY if self._limit.dropped or self._failure is not None else math.inf
            with trio.move_on_after(pause) as quiet:
                data = await pipe.receive_some(_CHUNK)
            if quiet.cancelled_caught:
                self._report_dropped(sink, now=True)
                self._failure = None  # journalctl runs
                continue
            if not data:
                return
            for line in lines.cut(bytes(data)):
                self._take_line(line, sink)

    def _take_line(self, line: bytes | None, sink: OutboxSink) -> None:
        entry = parse_entry(line, time.time()) if line is not None else None
        if entry is None:
            reason = f"is larger than {LONGEST_LINE >> 10} KiB" if line is None else "is damaged"
            self._queue(sink, Entry(0, time.time(), WARN, AGENT, "", f"an entry of the journal {reason}"))
            return
        self._failure, self._by_time = None, False
        if entry.unit != OWN_UNIT and self._filter.accepts(entry.identifier) and self._limit.admit(entry.time):
            self._report_dropped(sink, now=False)
            self._queue(sink, Entry(0, entry.time, entry.level, entry.name, "", entry.message))
            self._moved.announce()  # not for other entries, which may be read again: most systems write all the time
        if entry.cursor:
            self._position = Position(entry.cursor, entry.time)

    def _report_dropped(self, sink: OutboxSink, *, now: bool) -> None:
        if message := self._limit.report(now=now):
            moment = self._position.time if self._position is not None else time.time()
            self._queue(sink, Entry(0, moment, WARN, AGENT, "", message))

    def _queue(self, sink: OutboxSink, entry: Entry) -> None:
        notice = sink.write(entry)
        if notice is not None:
            _log.error("entries of the journal cannot be queued", reason=notice.message)

    def _note(self, message: str, remedy: str) -> None:
        problem = ProblemReport(SETTING, message, remedy)
        if self._failure != problem:
            _log.error("the journal cannot be forwarded", problem=message, remedy=remedy)
        self._failure = problem


def _load(path: Path) -> Position | None:
    """Return the stored place. None begins at the newest entry: there is no place, or it is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Position)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        _log.warning("the place in the journal cannot be read; entries may be missing in the cloud", file=str(path))
        return None
