"""The one root of every error that a user may read.

An error carries what happened, a small kind that every edge can map to its own codes, and a remedy in words. Errors
never carry secrets: whoever raises one masks first.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class ErrorKind(Enum):
    """Why something failed, independent of any protocol; each edge maps it to its own codes."""

    INVALID = "invalid"  # the caller's input is wrong whatever the state
    NOT_FOUND = "not_found"
    EXISTS = "exists"
    PERMISSION = "permission"  # the caller is known and may not
    UNAUTHENTICATED = "unauthenticated"
    PRECONDITION = "precondition"  # right input, wrong state: do something else first
    EXHAUSTED = "exhausted"  # a limit was reached; try less or later
    UNAVAILABLE = "unavailable"  # try the same again later
    UNSUPPORTED = "unsupported"  # this implementation cannot do that, ever
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    INTERNAL = "internal"  # our bug


class MachineError(Exception):
    """Root of the errors this project raises on purpose.

    `str(error)` is the message followed by the remedy, ready to show to a person.
    """

    kind: ErrorKind = ErrorKind.INTERNAL

    def __init__(self, message: str, *, kind: ErrorKind | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        if kind is not None:
            self.kind = kind

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}" if self.remedy else self.message


class ConfigError(MachineError):
    """One mistake in a document: where it is, what stands there, and what would be right.

    `path` is written as a person would point at it: `components.3.attributes.pins.a`.
    """

    kind = ErrorKind.INVALID

    def __init__(self, path: str, reason: str, *, value: object = None, remedy: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason, remedy=remedy)
        self.path = path
        self.reason = reason
        self.value = value


class ConfigErrors(ConfigError):
    """Several mistakes found together, in the order of the document; at least one.

    `path`, `reason`, `value` and `remedy` are those of the first; `str(error)` lists all, a line each.
    """

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        first = problems[0]
        super().__init__(first.path, first.reason, value=first.value, remedy=first.remedy)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))
