"""Log messages: the rules that select them, and the sinks that receive them.

Public, in the order in which to read them:

* `entry`: A log message and its text format
* `logger_names` (module): Logger names
* `activity`: The activity log: events of the logger `rdk.activity`, such as reconfigurations, shown at any log level
* `program_output`: Output of a program, cut into lines with a bounded length
* `ring`: A ring buffer with the newest log messages, for pages and calls that show them
* `rules`: Log levels by logger name: an ordered list of patterns, of which the last match applies
* `sinks`: Log sinks: a terminal, a pipe, a file with rotation
* `loggers`: The log pipeline: filters messages by level patterns, masks secrets, suppresses repetitions and writes to
  the sinks
* `outbox_sink`: A log sink that queues messages on disk for an uploader, which may be offline for weeks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telemetry.logs import logger_names as logger_names
    from telemetry.logs.activity import log_event as log_event
    from telemetry.logs.entry import ERROR as ERROR
    from telemetry.logs.entry import INFO as INFO
    from telemetry.logs.entry import WARN as WARN
    from telemetry.logs.entry import Entry as Entry
    from telemetry.logs.entry import fields_json as fields_json
    from telemetry.logs.loggers import MAX_MESSAGE as MAX_MESSAGE
    from telemetry.logs.loggers import REVEALED as REVEALED
    from telemetry.logs.loggers import Logs as Logs
    from telemetry.logs.loggers import configure_logs as configure_logs
    from telemetry.logs.outbox_sink import OutboxSink as OutboxSink
    from telemetry.logs.program_output import Lines as Lines
    from telemetry.logs.ring import LogRing as LogRing
    from telemetry.logs.rules import Rules as Rules
    from telemetry.logs.rules import compile_pattern as compile_pattern
    from telemetry.logs.rules import pattern_matches as pattern_matches
    from telemetry.logs.rules import rules_of_document as rules_of_document
    from telemetry.logs.sinks import ConsoleSink as ConsoleSink
    from telemetry.logs.sinks import FileSink as FileSink
    from telemetry.logs.sinks import Sink as Sink
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "entry": ["ERROR", "INFO", "WARN", "Entry", "fields_json"],
            "activity": ["log_event"],
            "program_output": ["Lines"],
            "ring": ["LogRing"],
            "rules": ["Rules", "compile_pattern", "pattern_matches", "rules_of_document"],
            "sinks": ["ConsoleSink", "FileSink", "Sink"],
            "loggers": ["MAX_MESSAGE", "REVEALED", "Logs", "configure_logs"],
            "outbox_sink": ["OutboxSink"],
        },
        modules=["logger_names"],
    )
