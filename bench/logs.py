"""Compare log lines per second, with rules and deduplication, with the standard library and an equivalent filter.

`python -m bench logs [--lines N] [--rounds N]`. Both write lines of the same format to a file, each with one unbuffered
write. The filter for the standard library determines the level of each logger by pattern, drops repetitions beyond
three in ten seconds, and masks passwords, as the machine does.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import re
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from schema.document.machine import MachineDocument, decode_document
from telemetry.logs import loggers as log
from telemetry.logs.sinks import FileSink

PATTERNS = [("rdk.*", "info"), ("rdk.components.*", "warn"), ("rdk.resource_manager.*:motor/*", "info")]
DOCUMENT = {
    "log": [{"pattern": pattern, "level": level} for pattern, level in PATTERNS],
    "modules": [{"name": "m", "executable_path": "/m", "env": {"API_KEY": "hunter2hunter2"}}],
}
NAMES = [f"rdk.resource_manager.rdk:component:motor/m{number}" for number in range(50)]
KEYS = re.compile(r"(?i)\b(\w*(?:password|secret|token|key))=\S+|hunter2hunter2")


class SameFilter(logging.Filter):
    """An equivalent filter for the standard library."""

    def __init__(self) -> None:
        super().__init__()
        self._rules = [
            (re.compile(pattern.replace(".", r"\.").replace("*", ".*")), logging.getLevelName(level.upper()))
            for pattern, level in PATTERNS
        ]
        self._levels: dict[str, int] = {}
        self._seen: dict[tuple[str, int, str], deque[float]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        level = self._levels.get(record.name)
        if level is None:
            matching = [level for pattern, level in self._rules if pattern.fullmatch(record.name)]
            level = self._levels[record.name] = matching[-1] if matching else logging.INFO
        if record.levelno < level:
            return False
        fields = getattr(record, "fields", None)
        shown = f"{record.getMessage()}\t{json.dumps(fields)}" if fields else record.getMessage()
        record.msg, record.args = KEYS.sub("***", shown), None
        times = self._seen.setdefault((record.name, record.levelno, record.msg), deque(maxlen=3))
        now = time.monotonic()
        if len(times) == 3 and now - times[0] < 10:
            return False
        times.append(now)
        if len(self._seen) > 1024:
            del self._seen[next(iter(self._seen))]
        return True


class Formatter(logging.Formatter):
    """A formatter with the machine's format: UTC time, level, logger, file and line, message."""

    converter = time.gmtime

    def __init__(self) -> None:
        line = "%(asctime)s.%(msecs)03dZ\t%(levelname)s\t%(name)s\t%(filename)s:%(lineno)d\t%(message)s"
        super().__init__(line, "%Y-%m-%dT%H:%M:%S")


Say = Callable[[str, int, str, dict[str, Any]], None]
Kind = Callable[[Path, MachineDocument], tuple[Say, Callable[[], None]]]


def ours(path: Path, document: MachineDocument) -> tuple[Say, Callable[[], None]]:
    logs = log.configure_logs([FileSink(path, max_bytes=1 << 40)])
    logs.apply(document)
    loggers = {name: log.get_logger(name) for name in NAMES}

    def say(name: str, level: int, message: str, fields: dict[str, Any]) -> None:
        loggers[name].log(level, message, **fields)

    return say, logs.close


def standard(path: Path, _: MachineDocument) -> tuple[Say, Callable[[], None]]:
    handler = logging.StreamHandler(io.TextIOWrapper(open(path, "ab", buffering=0), write_through=True))  # noqa: SIM115
    handler.setFormatter(Formatter())
    handler.addFilter(SameFilter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    loggers = {name: logging.getLogger(name) for name in NAMES}

    def say(name: str, level: int, message: str, fields: dict[str, Any]) -> None:
        loggers[name].log(level, message, extra={"fields": fields} if fields else None)

    def close() -> None:
        root.removeHandler(handler)
        handler.stream.close()
        handler.close()

    return say, close


CASES: dict[str, Callable[[int], tuple[int, str, dict[str, Any]]]] = {
    "shown, no fields": lambda number: (logging.INFO, f"moved to {number}", {}),
    "shown, three fields": lambda number: (logging.INFO, "moved", {"to": number, "rpm": 12.5, "board": "pi"}),
    "repeated": lambda number: (logging.INFO, "stalled", {}),
    "below its level": lambda number: (logging.DEBUG, "looked", {}),
}


def measure(
    kind: Callable[..., tuple[Say, Callable[[], None]]], case: str, lines: int, document: MachineDocument
) -> float:
    """Return the lines per second."""
    make = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        say, close = kind(Path(folder) / "log", document)
        messages = [(NAMES[number % len(NAMES)], *make(number)) for number in range(lines)]
        begin = time.perf_counter()
        for name, level, message, fields in messages:
            say(name, level, message, fields)
        took = time.perf_counter() - begin
        close()
    return lines / took


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench logs", description=__doc__)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    document = decode_document(json.dumps(DOCUMENT).encode()).document
    assert document is not None
    before = logging.getLogger().level
    print(f"{chosen.lines} lines, median of {chosen.rounds} interleaved rounds, pid {os.getpid()}")
    for case in CASES:
        figures: dict[str, list[float]] = {"ours": [], "logging": []}
        for _ in range(chosen.rounds):
            figures["ours"].append(measure(ours, case, chosen.lines, document))
            figures["logging"].append(measure(standard, case, chosen.lines, document))
        ours_, theirs = (statistics.median(figures[who]) for who in ("ours", "logging"))
        print(f"{case:22} ours {ours_:10,.0f}/s   logging {theirs:10,.0f}/s   {ours_ / theirs:5.2f}")
    logging.getLogger().setLevel(before)
    return 0


if __name__ == "__main__":
    raise SystemExit(main([]))
