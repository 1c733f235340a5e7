"""Spans: timed operations with their position in a trace. Pure; ids are those of W3C Trace Context."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# W3C Trace Context, section 3.2: version 00; ids of zeros are invalid
_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@dataclass(slots=True)
class Span:
    """A timed operation. Times are nanoseconds since 1970; `error` is empty if it succeeded."""

    trace: str  # 32 hexadecimal digits
    id: str  # 16 hexadecimal digits
    parent: str  # 16 hexadecimal digits, or empty for the root span of a trace
    name: str
    start: int
    end: int = 0
    server: bool = False  # the span of a call from another process
    error: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def milliseconds(self) -> float:
        """The duration in milliseconds."""
        return (self.end - self.start) / 1e6


def parse_traceparent(text: object) -> tuple[str, str] | None:
    """Return the ids of trace and parent in a `traceparent` header; None if the header is not valid."""
    match = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    return (match[1], match[2]) if match is not None else None
