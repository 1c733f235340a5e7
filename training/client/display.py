"""Events of a job as text for people: lines, and below them a progress bar on a terminal. Pure."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Final

from training.client.records import Numbered
from training.jobs.events import JobEvent, Log, Metric, Progress, Status

BAR: Final = 24  # columns
SHOWN_METRICS: Final = 3  # in the bar
_CLEAR: Final = "\r\x1b[K"


class Display:
    """Formats events. `columns` is the width of the terminal.

    It is 0 if there is none. Then no bar is drawn, and the progress has a line for each tenth.
    """

    def __init__(self, columns: int = 0) -> None:
        self._columns = columns
        self._bar = ""
        self._progress: Progress | None = None
        self._begin: tuple[datetime, int] | None = None  # time and count of the first progress since the start
        self._metrics: dict[str, Metric] = {}
        self._eta: float | None = None
        self._tenth = -1  # of the last line about the progress

    def feed(self, entry: Numbered) -> str:
        """Return the text to write for an event."""
        self._note(entry)
        line = line_of(entry.event)
        if not self._columns:
            return self._line(entry.event, line)
        silent = isinstance(entry.event, Progress | Metric)
        bar = self._drawn()
        text = ("" if silent else f"{_CLEAR if self._bar else ''}{line}\n{bar}") or f"{_CLEAR}{bar}"
        self._bar = bar
        return text

    def _line(self, event: JobEvent, line: str) -> str:
        if isinstance(event, Progress):
            tenth = 10 * event.done // event.total if event.total else 10
            if tenth == self._tenth:
                return ""
            self._tenth = tenth
            if self._eta is not None and event.done < event.total:
                line = f"{line}, {duration(self._eta)} left"
        return f"{line}\n"

    def close(self) -> str:
        """Return the text to write at the end, so that the cursor is at the beginning of a line."""
        text, self._bar = ("\n" if self._bar else ""), ""
        return text

    def _note(self, entry: Numbered) -> None:
        match entry.event:
            case Progress(done, _) as progress:
                if self._begin is None or done < self._begin[1]:
                    self._begin = entry.time, done
                begin, first = self._begin
                elapsed, steps = (entry.time - begin).total_seconds(), done - first
                self._eta = (progress.total - done) * elapsed / steps if steps > 0 else None
                self._progress = progress
            case Metric(name) as metric:
                self._metrics.pop(name, None)
                self._metrics[name] = metric
            case Status():
                self._begin = self._eta = None

    def _drawn(self) -> str:
        if self._progress is None:
            return ""
        done, total = self._progress.done, self._progress.total
        share = done / total if total else 1.0
        filled = round(share * BAR)
        parts = [f"[{'#' * filled}{'.' * (BAR - filled)}] {done}/{total} {share:4.0%}"]
        if self._eta is not None and done < total:
            parts.append(f"{duration(self._eta)} left")
        parts += [f"{metric.name} {metric.value:.4g}" for metric in [*self._metrics.values()][-SHOWN_METRICS:]]
        return clean("  ".join(parts))[: self._columns - 1]


def line_of(event: JobEvent) -> str:
    """Return an event as one line, without control characters: programs of others must not control the terminal."""
    match event:
        case Log(message, level):
            return clean(message if level == "info" else f"{level.upper()}: {message}")
        case Metric(name, value, step):
            return clean(f"{name} {value:.6g} (step {step})")
        case Progress(done, total):
            return f"{done} of {total} done"
        case Status(state, reason):
            return clean(f"the job is {state.value}" + (f": {reason}" if reason else ""))


def clean(text: str) -> str:
    """Replace control characters, and those that change the direction of text."""
    return "".join(" " if unicodedata.category(char) in ("Cc", "Cf") else char for char in text)


def duration(seconds: float) -> str:
    """Return a time such as `45 s`, `12 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
