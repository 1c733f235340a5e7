"""Base classes of all errors that are shown to users.

An error has a message, a kind that each protocol maps to its own codes, and a remedy. Errors never contain secrets;
mask values before raising one.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class ErrorKind(Enum):
    """Kind of a failure, independent of protocols, which map it to their own codes."""

    INVALID = "invalid"  # the input is wrong in any state
    NOT_FOUND = "not_found"
    EXISTS = "exists"
    PERMISSION = "permission"  # the caller is authenticated but not permitted
    UNAUTHENTICATED = "unauthenticated"
    PRECONDITION = "precondition"  # valid input in the wrong state: do something else first
    EXHAUSTED = "exhausted"  # a limit was reached; request less, or retry later
    UNAVAILABLE = "unavailable"  # retry later
    UNSUPPORTED = "unsupported"  # this implementation does not support it
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    INTERNAL = "internal"  # a bug


class MachineError(Exception):
    """Base class of the errors that this project raises deliberately.

    `str(error)` is the message followed by the remedy, for display to users.
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
    """Error in a document, with its path, value and remedy.

    `path` has the form `components.3.attributes.pins.a`.
    """

    kind = ErrorKind.INVALID

    def __init__(self, path: str, reason: str, *, value: object = None, remedy: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason, remedy=remedy)
        self.path = path
        self.reason = reason
        self.value = value


class ConfigErrors(ConfigError):
    """One or more errors in a document, in the order of the document.

    `path`, `reason`, `value` and `remedy` are those of the first error; `str(error)` lists all, one per line.
    """

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        first = problems[0]
        super().__init__(first.path, first.reason, value=first.value, remedy=first.remedy)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))
