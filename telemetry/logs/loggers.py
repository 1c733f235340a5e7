"""The log pipeline: filters messages by level patterns, masks secrets, suppresses repetitions and writes to the sinks.

structlog and standard-library loggers, including those of third parties, end in one handler on the standard library's
root logger. Messages from other threads are passed to Trio's thread first, so no locks are needed.
"""

from __future__ import annotations

import functools
import logging
import sys
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import msgspec
import structlog
import trio

from schema import ConfigError, Masker
from schema.document import MachineDocument
from support import ChangeSignal
from telemetry.logs import logger_names
from telemetry.logs.dedupe import IGNORED_FIELDS, THRESHOLD, WINDOW, DedupeVerdict, Deduplicator
from telemetry.logs.entry import DEBUG, Entry, fields_json, limited, plain
from telemetry.logs.ring import LogRing
from telemetry.logs.rules import Rules, rules_of_document
from telemetry.logs.sinks import Sink


def _keep_exception(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace `exc_info=True` by the exception itself, since the handler may run in another thread."""
    if event.get("exc_info") is True:
        event["exc_info"] = sys.exception()
    return event


REVEALED: Final = "revealed"
"""The field whose secrets are not masked; used only with -reveal-sensitive-config-diffs."""

MAX_MESSAGE: Final = 16384
"""Characters of a message, of a traceback and of all fields of a message together; the rest is cut off."""

_PROCESSORS: Final = (
    structlog.stdlib.filter_by_level,
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.PositionalArgumentsFormatter(),
    _keep_exception,
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
)


def get_logger(name: str = logger_names.ROOT) -> structlog.stdlib.BoundLogger:
    """Return the logger `name`; keyword arguments of its methods become JSON fields."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def context(**fields: Any) -> AbstractContextManager[None]:
    """Add fields such as `resource` and `operation` to every message of the current task and of tasks started in it."""
    return structlog.contextvars.bound_contextvars(**fields)


class _Key(NamedTuple):
    logger: str
    level: int
    message: str
    fields: str


class Logs(logging.Handler):
    """The log pipeline of a process, created by `configure_logs`. `close` removes it and closes the sinks."""

    def __init__(self, sinks: Sequence[Sink], ring: LogRing, clock: Callable[[], float]) -> None:
        super().__init__()
        self.ring = ring
        self._sinks = (ring, *sinks)
        self._clock = clock
        self.rules = Rules()
        """The current log levels."""
        self.masker = Masker()
        """Masks the secrets of all documents that were applied."""
        self._deduplicator: Deduplicator | None = Deduplicator()
        self._seq = 0
        self._token: trio.lowlevel.TrioToken | None = None
        self._suppressing = ChangeSignal()

    def apply(self, document: MachineDocument, *, debug: bool = False) -> tuple[ConfigError, ...]:
        """Apply the levels and deduplication of `document`; return a warning for each rule that is skipped."""
        self.masker = self.masker.and_those_of(msgspec.to_builtins(document, enc_hook=str, str_keys=True))
        rules, warnings = rules_of_document(document, debug=debug)
        self.set_rules(rules)
        self.deduplicate(not document.disable_log_deduplication)
        return warnings

    def add(self, sink: Sink) -> None:
        """Send messages also to `sink` from now on; `close` closes it."""
        self._sinks = (*self._sinks, sink)

    def deduplicate(self, enabled: bool) -> None:
        """Suppress repeated messages from now on, or show every message."""
        if not enabled:
            self._summarize(self._deduplicator.flush() if self._deduplicator else ())
            self._deduplicator = None
        elif self._deduplicator is None:
            self._deduplicator = Deduplicator()

    def set_rules(self, rules: Rules) -> None:
        """Use these levels from now on."""
        self.rules = rules
        logging.getLogger().setLevel(rules.lowest)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write summaries of suppressed messages when they are due, until cancelled.

        Without this task they are written with the next message of any kind.
        """
        task_status.started()
        while True:
            deadline = self._deduplicator.deadline if self._deduplicator else None
            if deadline is None:
                await self._suppressing.next.wait()
            else:
                await trio.sleep(max(0.0, deadline - self._clock()))  # negative if the event loop was busy
                self._expire()

    def emit(self, record: logging.LogRecord) -> None:
        """Handle a message; called by the standard library in any thread."""
        if record.levelno < self.rules.level(record.name) and record.name != logger_names.ACTIVITY:
            return
        if trio.lowlevel.in_trio_run():
            self._token = trio.lowlevel.current_trio_token()
        elif self._token is not None:
            try:
                self._token.run_sync_soon(self._guarded, record)
                return
            except trio.RunFinishedError:
                self._token = None
        self._guarded(record)

    def _guarded(self, record: logging.LogRecord) -> None:
        """Process a message without raising: an exception in Trio's thread would end the process."""
        try:
            self._process(record)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write pending summaries, remove the handler and close the sinks. May be called more than once."""
        logging.getLogger().removeHandler(self)
        if self._deduplicator is not None:
            self._summarize(self._deduplicator.flush())
        for sink in self._sinks:
            sink.close()
        self._sinks = (self.ring,)
        super().close()

    def _process(self, record: logging.LogRecord) -> None:
        message, fields, trace = _content(record, self.masker)
        self._expire()
        key = _Key(record.name, record.levelno, message, _comparable(fields))
        verdict = self._judge(key)
        if verdict is DedupeVerdict.NOTICE:
            message = f"suppressing a message that was logged {THRESHOLD} times in {WINDOW:g} s: {message}"
            self._suppressing.announce()
        if verdict is not DedupeVerdict.DROP:
            self._write(record.created, key, _caller(record), message, fields, trace)

    def _judge(self, key: _Key) -> DedupeVerdict:
        if self._deduplicator is None or key.level <= DEBUG or _never_suppressed(key.logger):
            return DedupeVerdict.SHOW
        return self._deduplicator.step(key, self._clock())

    def _expire(self) -> None:
        if self._deduplicator is not None:
            self._summarize(self._deduplicator.expire(self._clock()))

    def _summarize(self, ended: Iterable[tuple[Hashable, int]]) -> None:
        for key, count in ended:
            assert isinstance(key, _Key)
            times = {1: "once", 2: "twice"}.get(count, f"{count} times")
            message = f"a suppressed message was logged {times} more: {key.message}"
            self._write(time.time(), key, "", message, {"suppressed": count}, "")

    def _write(self, when: float, key: _Key, caller: str, message: str, fields: Mapping[str, Any], trace: str) -> None:
        self._seq += 1
        entry = Entry(self._seq, when, key.level, key.logger, caller, message, fields, trace)
        notices = [notice for sink in self._sinks if (notice := sink.write(entry)) is not None]
        for notice in notices:
            logging.getLogger(logger_names.LOGS).log(notice.level, notice.message)


def configure_logs(
    sinks: Sequence[Sink] = (), *, ring: LogRing | None = None, clock: Callable[[], float] = time.monotonic
) -> Logs:
    """Send all log messages of this process to `sinks` and `ring`, at level info until `Logs.apply`.

    `clock` returns the seconds by which the window of deduplication is measured.
    """
    structlog.configure(
        processors=list(_PROCESSORS),  # a new list: structlog's test helpers change it in place
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    logs = Logs(sinks, ring or LogRing(), clock)
    logs.set_rules(Rules())
    logging.getLogger(logger_names.ACTIVITY).setLevel(logging.INFO)
    for name in logger_names.CARRIERS:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger().addHandler(logs)
    return logs


def _never_suppressed(logger: str) -> bool:
    return (
        logger == logger_names.ACTIVITY
        or logger.endswith(logger_names.STDERR_SUFFIX)
        or logger.startswith(f"{logger_names.JOBS}.")
    )


def _content(record: logging.LogRecord, masker: Masker) -> tuple[str, dict[str, Any], str]:
    """Return the message, fields and traceback of a record, with secrets masked."""
    fields: dict[str, Any] = {}
    error: Any = record.exc_info
    if isinstance(record.msg, dict):
        fields = {key: value for key, value in record.msg.items() if not key.startswith("_")}
        message = str(fields.pop("event", ""))
        if "event_" in fields:  # stands for a field `event`, a name that structlog uses for the message
            fields = {"event" if key == "event_" else key: value for key, value in fields.items()}
        error = fields.pop("exc_info", None) or error
        fields.pop("stack_info", None)
    else:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = f"{record.msg} {record.args!r}"
    message = masker.shortened(message, MAX_MESSAGE)
    if not fields and not error:
        return message, fields, ""
    revealed = {key: fields.pop(key) for key in (REVEALED,) if key in fields}
    shown = masker.value(limited(plain(fields), MAX_MESSAGE))
    return message, {**shown, **plain(revealed)}, masker.shortened(_trace(error), MAX_MESSAGE)


def _trace(error: Any) -> str:
    if isinstance(error, tuple):
        error = error[1]
    return "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else ""


def _comparable(fields: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in fields.items() if key not in IGNORED_FIELDS}
    return fields_json(kept) if kept else ""


def _caller(record: logging.LogRecord) -> str:
    return f"{_short(record.pathname)}:{record.lineno}" if record.pathname else ""


@functools.lru_cache(1024)
def _short(path: str) -> str:
    return "/".join(PurePath(path).parts[-2:])
