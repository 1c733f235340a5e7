"""Events of a job: status, log, metric and progress; their stored form, and the lines by which a program reports. Pure.

Whatever a program prints is an event. A line that begins with `REPORT` and continues with JSON is a metric or progress;
every other line, also a malformed report, is a log entry.
"""

from __future__ import annotations

from typing import Final

import msgspec

from training.jobs.lifecycle import JobState

REPORT: Final = "::training "
MAX_MESSAGE: Final = 4000  # characters; longer lines are cut
MAX_NAME: Final = 100  # characters in the name of a metric
LEVELS: Final = ("debug", "info", "warning", "error")


class Status(msgspec.Struct, frozen=True, tag_field="kind", tag="status"):
    """A change of the state; `reason` explains a failure."""

    state: JobState
    reason: str = ""


class Log(msgspec.Struct, frozen=True, tag_field="kind", tag="log"):
    """A line of output, or a remark of the cloud. `level` is one of LEVELS."""

    message: str
    level: str = "info"


class Metric(msgspec.Struct, frozen=True, tag_field="kind", tag="metric"):
    """A figure, such as the loss after a step."""

    name: str
    value: float
    step: int = 0


class Progress(msgspec.Struct, frozen=True, tag_field="kind", tag="progress"):
    """How much is done."""

    done: int
    total: int


JobEvent = Status | Log | Metric | Progress
_event: Final = msgspec.json.Decoder(JobEvent)
_report: Final = msgspec.json.Decoder(Metric | Progress)


def encode_event(event: JobEvent) -> str:
    """Return the stored form."""
    return msgspec.json.encode(event).decode()


def decode_event(text: str) -> JobEvent:
    """Parse the result of `encode_event`."""
    event: JobEvent = _event.decode(text)
    return event


def report(event: Metric | Progress) -> str:
    """Return the line that a program prints to report `event`."""
    return REPORT + encode_event(event)


def of_line(line: str) -> JobEvent:
    """Return the event that a line of output means."""
    if line.startswith(REPORT):
        try:
            event: Metric | Progress = _report.decode(line[len(REPORT) :])
        except msgspec.DecodeError:
            return Log(printable(line))
        if _sound(event):
            return event
    level, message = "info", line
    for name in LEVELS:
        if line.startswith(f"{name.upper()}: "):
            level, message = name, line[len(name) + 2 :]
    return Log(printable(message), level)


def printable(text: str) -> str:
    """Return a text that every database can store, cut to MAX_MESSAGE."""
    cut = text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
    return "".join(letter if letter.isprintable() or letter == "\t" else "\N{REPLACEMENT CHARACTER}" for letter in cut)


def _sound(event: Metric | Progress) -> bool:
    largest = 2**53
    match event:
        case Progress(done, total):
            return 0 <= done <= total <= largest
        case Metric(name, _, step):
            return name.isprintable() and 0 < len(name) <= MAX_NAME and 0 <= step <= largest
